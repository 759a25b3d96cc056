"""Cards and modals: pure functions from stored state to Block Kit."""
