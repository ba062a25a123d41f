"""Rate limits by Limitgate for applications of ASGI and WSGI."""

from .asgi import LimitASGI
from .ask import Decision, DecisionError, Unavailable
from .retry import retry
from .wsgi import LimitWSGI

__all__ = ["Decision", "DecisionError", "LimitASGI", "LimitWSGI", "Unavailable", "retry"]
