"""x"""
FAULTS={}
