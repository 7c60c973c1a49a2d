/** What `npm run bench -- --help` says: options, and how figures are taken. */
export const HELP = `npm run bench [-- OPTIONS]

Measures a completion through the gateway, at home and in the other region with a global key, against a
bare pass-through Worker (the floor) and the upstream mock alone: CPU per request of the workerd processes,
times, rows, calls, list price. Everything is on: register, wallet, outbox, metrics. Direct workerd sockets,
storage in memory where there is a tmpfs. About two minutes.

  --rounds N    rounds of slices, default 20: 25 times of each kind and place a round
  --against C   instead of all that: this gateway and that of commit C in the same rounds, and what
                either is of the other
  --doors       instead of all that: what each text door costs beside chat, at home, over an upstream that
                speaks chat, and over one that speaks the door's own wire
  --open        instead of all that: what is added at steady rates, most of all in the tail
  --requests N  with --open: so many of each rate at each place, default 10000, which p99.9 needs; the upstream
                itself gets a quarter. With --rates 50,s20 --places home about 28 minutes, everywhere 65
  --places P    with --open: some of home, home100, away, away100 (with a hundred organisations), with commas
  --rates R     with --open: requests a second, those of streams after an s; default 10,50,200,s20
  --beside G    with --open: the gateways portkey, litellm, or both with commas, each over the same upstream with its
                defaults, litellm with two workers; each is installed in the user's cache folder (25 and 742 MB) and stays
                there. One that cannot be is left out, and the run says so
  --knee        instead of all that: how many requests a second the machine bears; at most 90 s
  --hot         instead of all that: what 24 organisations of a request a second wait for, without and
                with one more that offers several times what it may have in flight
  --seconds N   with --hot: measured time of each run, default 12
  --json        the figures as JSON on stdout: { figures, rounds } or { figures, steps }
  --help        this text

How CPU is taken: every round visits floor, pump, home and peer in short slices (100 JSON requests, 300 of
the floor, or 8 streams, 8 at a time), in the opposite order each time, so that a machine that is slow for
a second is slow for all of them. Some requests before a slice wake its processes and do not count; it ends
when they are quiet, so what an answer leaves to be done is in it. A ratio is the median of the rounds' own
ratios: up to half of the rounds may be spoiled without moving it far, and its quartiles say how far to trust
it. "least" is the least CPU of any slice, in a ratio's row the ratio of the two: a second opinion. On a busy
machine it may mislead, since requests that queue up are cheaper together.
Streams at 20 ms a word run through floor, pump and gateway at the same time.
How times are taken: slices of 25 in the same rounds, JSON one at a time, streams of 10 words two at a
time, the first two of a slice not counted. "over direct" and "over floor" are differences of quantiles.
How the knee is found: an open loop, times from when a request was due; the rate goes up by 15 % until
p99 is over 5 times that of a low load (the best of three), or less than 97 % is answered with 200 (a shed
503 is not), twice in a row; then the gap is halved twice. 50 organisations in turn, and one alone; JSON
answered at once by the upstream. The load and the upstream run on the same machine.

How two are compared: the files of commit C are built with the packages that are installed here, and both
gateways run beside each other. Every round takes each of its slices from both, one after the other, and the
other way round next time; a ratio is the median of the rounds' own. With 40 rounds its quartiles are some
hundredths apart on a quiet machine. A first byte "added" is one beyond the floor's in the same round. Calls and
rows are counted by either commit's own counters.

How steady rates are taken: an open loop, times from when a request was due; direct, floor, home and peer in
turn, the other way round next time, 5 rounds unless --rounds says more, one organisation and a hundred; every
figure is the median of the rounds' own. JSON to its last byte; streams, of 60 words with one every 5 ms, to
their first.

How a hot organisation is measured: an open loop, 5 pairs of runs unless --rounds says more, what is due in the first
5 s not counted. The upstream takes 50 ms to its first word and writes 25 a second; the others' streams have 25, the
hot one's 50 to 150, over 20 keys. It ends with 1 when the others' p99 rises by more than 20 %, one of them is not
served, or nothing of the hot one's is shed.
`;
