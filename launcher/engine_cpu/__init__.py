"""The real engine on a machine without a GPU: SGLang's own platform plug-in hook, and nothing else of ours.

This folder is copied into the engine's environment by `tools/setup_engine.py`, so it imports nothing of `launcher`.
"""
