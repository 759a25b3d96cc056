"""Slack cards: what a person sees of a gate."""
