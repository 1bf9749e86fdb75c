"""The profiles that ship with the launcher: YAML only. This file lets them be found when installed."""
