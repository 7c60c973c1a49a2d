/**
 * Where a completion can be asked for: at the upstream mock itself, at a bare pass-through Worker before
 * it (the floor), at a Worker that pumps it through, or at the gateway: at home, in the other region with
 * a global key, or in one whose link to home is long; or at the gateway of the commit it is compared with.
 */
export type Place =
  | "direct"
  | "floor"
  | "pump"
  | "home"
  | "peer"
  | "far peer"
  | "home before"
  | "peer before";
export type Kind = "json" | "stream";

export type Target = {
  readonly name: Place;
  /** Ends in /chat/completions. */
  readonly url: string;
  /** Used in turn; each may be used 1000 times a minute. */
  readonly keys: readonly string[];
  /** The workerd processes that a request keeps busy; none for the upstream itself. */
  readonly pids: readonly number[];
};

/** What is asked for. `words` is the output cap, which is how many words a stream has. */
export type Ask = {
  readonly kind: Kind;
  readonly words: number;
  /** A word every 20 ms, as models write, every 5 ms, or after 50 ms every 40, instead of every 2 ms. */
  readonly pace?: "typical" | "steady" | "slow" | undefined;
};

/** When the first byte of the body and the last came, in ms since the request was begun. */
export type Sample = { readonly firstByteMs: number; readonly totalMs: number };

/** Something that runs beside this process until it is stopped. */
export type Stoppable = { readonly stop: () => unknown };
