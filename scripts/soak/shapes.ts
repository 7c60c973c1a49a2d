import type { Forced, Kind } from "./trace.ts";

/** A way to ask; `body` null is a GET. */
export type Shape = {
  readonly name: string;
  readonly kind: Kind;
  readonly path: string;
  readonly forced: Forced;
  /** How often it is drawn among the shapes of its load. */
  readonly weight: number;
  /** Whether its upstream takes its time. */
  readonly isSlow?: boolean;
  readonly body: ((words: string, user: string | null) => object) | null;
};

const CAP = 120;

function chat(name: string, weight: number, of: Partial<Shape> & { more?: object } = {}): Shape {
  const { more = {}, ...rest } = of;
  const isStream = "stream" in more;
  const body: Shape["body"] = (words, user) => {
    const messages = [{ role: "user", content: words }];
    return { model: name, messages, max_tokens: CAP, ...(user === null ? {} : { user }), ...more };
  };
  return {
    name: `${name}${isStream ? " stream" : ""}`,
    kind: isStream ? "stream" : "json",
    path: "/chat/completions",
    forced: "nothing",
    weight,
    body,
    ...rest,
  };
}

function embeddings(model: string, weight: number): Shape {
  return {
    name: model,
    kind: "embeddings",
    path: "/embeddings",
    forced: "nothing",
    weight,
    body: (words, user) => ({ model, input: [words, "b"], ...(user === null ? {} : { user }) }),
  };
}

function read(path: string, weight: number): Shape {
  return { name: `GET ${path}`, kind: "read", path, forced: "nothing", weight, body: null };
}

const STREAM = { stream: true };
const TOLD = { stream: true, stream_options: { include_usage: true } };

/** Takes seconds, so that many of it are in flight together. */
export const LINGERING: Shape = chat("sandbox/slow-stream", 1, {
  more: { ...TOLD, max_tokens: 20 },
  isSlow: true,
});

/** What customers ask for and pay. */
export const PAID: readonly Shape[] = [
  chat("sandbox/echo", 24),
  chat("sandbox/echo", 14, { more: TOLD }),
  chat("sandbox/echo", 5, { more: STREAM, name: "sandbox/echo stream untold" }),
  chat("sandbox/split-utf8", 3, { more: TOLD }),
  chat("sandbox/no-usage", 3, { more: TOLD }),
  LINGERING,
  chat("sandbox/cut", 1, { more: TOLD, forced: "break" }),
  embeddings("sandbox/embed", 9),
  chat("mock/chat", 12),
  chat("mock/chat", 14, { more: TOLD }),
  embeddings("mock/embed", 4),
  chat("mock/flaky", 3),
  chat("mock/flaky", 2, { more: TOLD }),
  chat("mock/broken", 3, { forced: "failure" }),
  chat("mock/cutting", 1, { more: TOLD, forced: "break" }),
  chat("mock/busy", 1, { forced: "overload" }),
];

/** Small and alike: for storms, in which what is refused matters. */
export const PLAIN: readonly Shape[] = [
  chat("sandbox/echo", 6),
  chat("sandbox/echo", 2, { more: TOLD }),
  embeddings("sandbox/embed", 2),
];

/** What costs nothing. */
export const READS: readonly Shape[] = [read("/balance", 3), read("/models", 2), read("/users", 1)];

/** Refused whoever asks. */
export const WRONG: readonly Shape[] = [
  chat("sandbox/nobody", 1, { kind: "wrong", name: "unknown model" }),
  chat("sandbox/echo", 1, { kind: "wrong", name: "wrong field", more: { temperature: 3 } }),
  chat("sandbox/echo", 1, { kind: "wrong", name: "wrong region" }),
];

/** With keys that are none: refused before anything is asked. */
export const FORGED: readonly Shape[] = [
  chat("sandbox/echo", 3, { kind: "forged", name: "forged JSON" }),
  chat("sandbox/echo", 1, { kind: "forged", name: "forged stream", more: TOLD }),
];

const WORDS =
  "the sky over the bay is blue because small things scatter light of short waves".split(" ");

/** A prompt of 1 to 60 words: below the size at which a hold is estimated and no longer bounded. */
export function wordsOf(random: number): string {
  const count = 1 + Math.floor(random * 60);
  return Array.from({ length: count }, (_, i) => WORDS[(i * 7 + count) % WORDS.length]).join(" ");
}
