"""Mutation testing of the decisions: every change to them must fail a test."""
