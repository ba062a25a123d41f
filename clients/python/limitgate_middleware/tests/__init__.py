"""Tests of the middleware with a running Limitgate. README.md says how to run them."""
