"""Runs the real engine on a machine without a GPU through SGLang's own platform plug-in hook.

`tools/setup_engine.py` copies this folder into the engine's environment, so it must not import from `launcher`.
"""
