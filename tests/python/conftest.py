"""Skips those of scipy's tests that expect what hostless does otherwise on purpose, each with its reason."""

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "fail_slow(seconds): scipy's mark of slow tests")


def pytest_collection_modifyitems(items):
    for item in items:
        exceptions = getattr(item.module, "EXCEPTIONS", {})
        for part, reason in exceptions.items():
            if part in item.name:
                item.add_marker(pytest.mark.skip(reason=reason))
