"""The shell commands besides `demo` and `serve`, one module a group."""
