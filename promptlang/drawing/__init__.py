"""Drawings of execution graphs: SVG and DOT, JSON, and lines of text."""
