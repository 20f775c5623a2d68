"""Checking and running Cypher that a model or a person wrote."""

from graphret.cypher.check import check
from graphret.cypher.execution import arun_checked, run_checked
from graphret.cypher.report import Finding, Report

__all__ = ["Finding", "Report", "arun_checked", "check", "run_checked"]
