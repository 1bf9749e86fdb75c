"""x"""
ODDITIES={}
