"""Checking and running Cypher that a model or a person wrote."""

from graphret.cypher.check import check
from graphret.cypher.report import Finding, Report
from graphret.cypher.running import arun_checked, run_checked

__all__ = ["Finding", "Report", "arun_checked", "check", "run_checked"]
