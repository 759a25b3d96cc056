"""Motus (`motus serve`): sessions whose turns are interrupted until somebody answers."""
