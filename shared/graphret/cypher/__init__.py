"""Checking and running Cypher that a model or a person wrote."""

from graphret.cypher.report import Finding, Report

__all__ = ["Finding", "Report"]
