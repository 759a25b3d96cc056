"""The crash matrix: askgate killed at each of its calls, and what must be true afterwards.

A *place* is one call that leaves the process, a script of the store or an HTTP request, counted by its name:
`script decide#2`, `slack chat.update#1`, `host POST /resumes/claim#3`. A *point* is just before or just after it.
"""
