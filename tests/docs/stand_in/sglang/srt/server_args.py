"""The argument check of the stand-in engine: it accepts every flag, as given. The launcher's dry run asks it."""


class Arguments:
    def __init__(self, words: list[str]) -> None:
        for index, word in enumerate(words):
            if word.startswith("--"):
                following = words[index + 1] if index + 1 < len(words) else "--"
                name, _, value = word[2:].replace("-", "_").partition("=")
                setattr(self, name, value or (True if following.startswith("--") else following))

    def check_server_args(self) -> None:
        """Nothing is wrong."""


def prepare_server_args(words: list[str]) -> Arguments:
    return Arguments(words)
