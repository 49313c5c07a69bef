"""Exchanges of ghosts and collectives between neighbours, without a matrix."""

from .exchange import Exchange, ReverseExchange
from .neighborhood import Collective, Neighborhood
from .plan import ExchangePlan, run_threads

__all__ = ["Collective", "Exchange", "ExchangePlan", "Neighborhood", "ReverseExchange", "run_threads"]
