"""A stand-in of an SGLang server with planted faults, and healthy servers that are odd.

The stand-in is independent of the checks that it measures: its faults were chosen by mechanism. A deterministic toy
model answers over real HTTP; a scheduler with lanes, a queue, a prefix cache and an account of tokens runs it. What
the model says depends on the tokens that it sees and on nothing else, so scores of a prompt equal those of decoding,
and a fault that hides tokens, changes a template or mixes up prompts has the effects that it has in an engine.

From Python::

    from tests.serving.server import serving
    from tests.serving.table import FAULTS, SINGLE, COMBINED, MECHANISMS
    from tests.serving.oddities import ODDITIES

    with serving(["salad-each-20"]) as (url, state): ...      # one fault; a list may have several
    with serving(odd="thinks-parsed") as (url, state): ...    # healthy, and unlike the usual server
    with serving(speed=0, running=8) as (url, state): ...     # any option of `options.Options`

    from tests.serving.proxy import proxying                  # before a real server
    with proxying("http://127.0.0.1:30000", ["proxy-template-twice"]) as url: ...

`speed=0` does not sleep between tokens; the default is 400 tokens a second for each of at most 32 streams. A server
with a fault has what the fault needs, such as adapters, pictures or four replicas. `state.errors` holds what went
wrong inside of the stand-in itself: it must stay empty.

From the command line: `python -m tests.serving list | serve | witness | odd | proxy`. `witness --all` proves that each
fault can be seen with a handful of plain requests, and that the same requests see nothing on a healthy server.

== ======================================= ======= ====================
   mechanism                               faults  module
== ======================================= ======= ====================
A  sampling                                20      faults_sampling
B  the contract of the API                 28      faults_contract
C  the meaning of a conversation           23      faults_conversation
D  bytes                                   21      faults_bytes
E  log-probabilities                       21      faults_logprobs
F  streams                                 28      faults_streams
G  users get what belongs to others        16      faults_users
H  structure: schemas, grammars, tools     33      faults_structure
I  length                                  20      faults_length
J  now and then, and time                  24      faults_times
K  what the server tells of itself         23      faults_reports
L  routes that nobody asks                 29      faults_routes
M  quality of the model                    17      faults_quality
N  batches, lanes and replicas             21      faults_batches
O  the prefix cache                        16      faults_cache
P  aborts, errors and load                 13      faults_lifecycle
== ======================================= ======= ====================

In all 353 faults and 20 combinations of two; 168 of them do not show with every request. There are 70 odd but healthy
servers, and 54 faults for the proxy, 25 of them its own.

What the model knows: `skills` and `knowledge` (facts, sums, lists, finding again what was said), `obedience` (texts to
repeat, prescribed answers), `patterns` (schemas, regular expressions), `tooling` (calls of any tool), `pictures`,
`vectors`. For what it was not taught it asks `oracle`, the one door to answers of other stand-ins.
"""
