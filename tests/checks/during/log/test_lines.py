import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.during.log.lines import MAX_CHARS, Line, parse


def lines(text: str) -> list[Line]:
    return list(parse(text.encode(), 7))


def test_a_record_gives_time_rank_and_message() -> None:
    [line] = lines("[2026-11-29 15:25:59 DP0 TP1 EP3] Init parallel begin.\n")
    assert line == Line(
        number=7, text="Init parallel begin.", time="2026-11-29 15:25:59", rank="DP0 TP1 EP3", headed=True
    )


def test_milliseconds_belong_to_the_time() -> None:
    [line] = lines("[2026-11-29 15:25:59.123 TP0] x")
    assert (line.time, line.rank) == ("2026-11-29 15:25:59.123", "TP0")


def test_an_early_record_keeps_level_and_place_in_its_text() -> None:
    [line] = lines("[2026-03-07 15:21:19] WARNING model_config.py:1012: DeepGemm is enabled")
    assert line.text == "WARNING model_config.py:1012: DeepGemm is enabled"


def test_a_raw_line_has_no_time() -> None:
    [line] = lines('  File "/x.py", line 3, in f\n')
    assert (line.text, line.time, line.headed) == ('  File "/x.py", line 3, in f', "", False)


def test_a_torch_rank_prefix_becomes_the_rank() -> None:
    [line] = lines("[rank3]:   raise ValueError(x)")
    assert (line.rank, line.text) == ("rank3", "  raise ValueError(x)")


def test_of_a_progress_bar_only_the_last_state_is_kept() -> None:
    bar = "\r".join(f"Loading shards: {n}% Completed | {n}/100 [00:01<00:09,  1.0it/s]" for n in range(100))
    [line] = lines(bar)
    assert "99/100" in line.text


def test_a_record_glued_to_a_bar_is_a_line_of_its_own() -> None:
    bar, record = lines("  0%|          | 0/36 [00:00<?, ?it/s][2026-11-29 15:16:18 TP0] Capture failed")
    assert "0/36" in bar.text
    assert (record.text, record.rank, record.number) == ("Capture failed", "TP0", 7)


def test_a_time_quoted_in_a_message_does_not_start_a_record() -> None:
    [line] = lines("ValueError: cannot parse '[2026-11-29 15:16:18] hello'")
    assert line.text.startswith("ValueError")


def test_colours_and_control_characters_are_removed() -> None:
    [line] = lines("\x1b[1;31m[2026-11-29 15:16:18]\x1b[0m boom\x07\x00")
    assert (line.text, line.headed) == ("boom", True)


def test_container_prefixes_are_removed() -> None:
    for prefix in ("sglang-1  | ", "2026-11-29T15:18:28.123456789Z ", "Nov 29 15:18:28 gpu7 python3[4711]: "):
        [headed] = lines(prefix + "[2026-11-29 15:16:18 TP0] boom")
        assert (headed.text, headed.rank) == ("boom", "TP0"), prefix
        [raw] = lines(prefix + '  File "/x.py", line 3, in f')
        assert raw.text == '  File "/x.py", line 3, in f', prefix


def test_a_very_long_line_keeps_both_ends() -> None:
    [line] = lines("RuntimeError: " + "x" * 10_000_000 + " the end")
    assert len(line.text) <= MAX_CHARS + 16
    assert line.text.startswith("RuntimeError: ") and line.text.endswith(" the end")


def test_the_arguments_line_is_kept_whole() -> None:
    [line] = lines("[2026-11-29 15:16:18] server_args=ServerArgs(" + "a=1, " * 8000 + "z=2)")
    assert line.text.endswith("z=2)") and "..." not in line.text


@given(st.binary(max_size=4000))
def test_any_bytes_give_lines_without_newlines(raw: bytes) -> None:
    found = list(parse(raw.replace(b"\n", b""), 1))
    assert found
    assert all("\r" not in line.text and "\x1b[" not in line.text for line in found)


@pytest.mark.parametrize(
    "prefix",
    [
        "sglang-1  | ",
        "2026-11-29T15:25:59.123456789Z stderr F ",
        "2026-11-29T15:25:59+0000 node7 sglang[1234]: ",
        "Nov 29 15:25:59 node7 sglang[1234]: ",
        "[pod/sglang-0/server] ",
        "(Actor pid=811, ip=10.0.0.2) ",
        "3: ",
        "[1,3]<stderr>:",
    ],
)
def test_what_a_container_or_a_cluster_puts_in_front_is_taken_away(prefix: str) -> None:
    [record] = lines(f"{prefix}[2026-11-29 15:25:59 TP1] Load weight begin.\n")
    assert (record.text, record.rank, record.headed) == ("Load weight begin.", "TP1", True)
    [frame] = lines(f'{prefix}  File "/x.py", line 3, in f\n')
    assert frame.text == '  File "/x.py", line 3, in f'


def test_a_message_that_begins_with_a_word_and_a_colon_keeps_it() -> None:
    [line] = lines("RuntimeError: 3: no such thing")
    assert line.text == "RuntimeError: 3: no such thing"


@pytest.mark.parametrize(
    ("raw", "text", "stream"),
    [
        ("sglang-1  | ValueError: x", "ValueError: x", "sglang-1"),
        ("3: ValueError: x", "ValueError: x", "3"),
        ("[1,5]<stderr>:ValueError: x", "ValueError: x", "1,5"),
        ("[pod/sglang-0/server] ValueError: x", "ValueError: x", "pod/sglang-0/server"),
        ("[pod/sglang-0/server] 2026-03-04T09:12:33.123456789Z ValueError: x", "ValueError: x", "pod/sglang-0/server"),
        ("(SGLangActor pid=4122, ip=10.0.0.4) ValueError: x", "ValueError: x", "SGLangActor pid=4122"),
        (
            "(EngineCore_0 pid=4122) ERROR 03-04 09:12:33 [core.py:708] ValueError: x",
            "ValueError: x",
            "EngineCore_0 pid=4122",
        ),
        ("2026-03-04T09:12:33.123456789+00:00 stderr F ValueError: x", "ValueError: x", ""),
        ("Mar 04 09:12:33 gpu-7 sglang[4122]: ValueError: x", "ValueError: x", ""),
    ],
)
def test_what_a_collector_puts_in_front_is_taken_off(raw: str, text: str, stream: str) -> None:
    [line] = lines(raw)
    assert (line.text, line.stream) == (text, stream)


def test_a_collectors_name_is_kept_of_a_record_too() -> None:
    [line] = lines("sglang-1  | [2026-11-29 15:25:59 TP1] Init parallel begin.")
    assert (line.text, line.rank, line.stream, line.headed) == ("Init parallel begin.", "TP1", "sglang-1", True)


def test_one_object_a_line_is_unpacked() -> None:
    [line] = lines(
        '{"log":"[2026-11-29 15:25:59 TP1] It\'s \\"x\\"\\n","stream":"stderr","time":"2026-11-29T15:25:59Z"}'
    )
    assert (line.text, line.rank) == ('It\'s "x"', "TP1")


@pytest.mark.parametrize("raw", ['{"a', '{"log": 1}', '{"a":' * 5000, '{"time": "x"}'])
def test_what_only_looks_like_an_object_stays_as_it_is(raw: str) -> None:
    [line] = lines(raw)
    assert line.text == raw[:MAX_CHARS] or line.text.startswith(raw[:100])


def test_requests_and_answers_are_not_kept() -> None:
    [line] = lines("[2026-11-29 15:25:59] Finish: obj=GenerateReqInput(rid='x'), out={'text': 'Segmentation fault'}")
    assert "Segmentation" not in line.text


@pytest.mark.parametrize(
    "prefix",
    [
        "[2026-01-02T03:04:05.678Z] ",
        "2026-01-02T03:04:05.678901234Z stdout F ",
        "(2026-01-02 03:04:05+00:00) ",
        "2026-01-02 03:04:05,123 +0100 | ",
        "app-1  | 2026-01-02T03:04:05.678Z ",
        "[pod/sgl-0/main] 2026-01-02T03:04:05Z ",
        "2026-01-02T03:04:05Z app-1  | ",
        "Jan  2 03:04:05 node sglang[12]: ",
        "[  123.456789] ",
    ],
)
def test_prefixes_of_collectors_are_stripped_in_any_bracket_and_order(prefix: str) -> None:
    [frame] = parse(f'{prefix}  File "/app/x.py", line 7, in f'.encode(), 1)
    assert (frame.text, frame.headed) == ('  File "/app/x.py", line 7, in f', False)
    [record] = parse(f"{prefix}[2026-01-02 03:04:05 TP0] hello".encode(), 1)
    assert (record.text, record.rank, record.headed) == ("hello", "TP0", True)


@pytest.mark.parametrize("text", ["2026-01-02 03:04:05 plain", "ValueError: 2026-01-02T03:04:05Z", "x = [1.5] "])
def test_a_text_without_a_collectors_shape_stays_whole(text: str) -> None:
    [line] = parse(text.encode(), 1)
    assert line.text == text
