"""The hosts: the systems that own runs. `base.py` is what each of them has to be, one module a system."""
