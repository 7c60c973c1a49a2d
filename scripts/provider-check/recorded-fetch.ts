/** Records traffic in order, with bodies shortened and keys replaced. */
export type Recorder = {
  /** Returns the lines since the last call. */
  take(): Promise<string[]>;
  /** Replaces keys in a text, because providers and models can repeat them. */
  clean(text: string): string;
  /** Restores the original `fetch`. */
  restore(): void;
};

const BODY_CHARACTERS_MAX = 1500;
const SECRET_CHARACTERS_MIN = 6;

/** Records every request from now on, with `secrets` replaced by [key]. */
export function recordFetch(secrets: readonly string[]): Recorder {
  const own = globalThis.fetch;
  const hidden = secrets.filter((secret) => secret.length >= SECRET_CHARACTERS_MIN);
  const clean = (text: string): string =>
    hidden.reduce((rest, secret) => rest.replaceAll(secret, "[key]"), text);
  let lines: Promise<string>[] = [];
  globalThis.fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    lines.push(
      Promise.resolve(`> ${init?.method ?? "GET"} ${url} ${shortened(textOf(init?.body))}`),
    );
    const response = await own(input, init);
    // A copy is read while the adapter reads the response. If the adapter cancels a stream, both
    // end.
    const copy = response.clone();
    lines.push(
      copy.text().then(
        (text) => `< ${response.status} ${shortened(text)}`,
        () => `< ${response.status} (the body ended early)`,
      ),
    );
    return response;
  };
  return {
    async take() {
      const taken = lines;
      lines = [];
      const settled = await Promise.all(taken.map((line) => Promise.race([line, bodyTimeout()])));
      return settled.map(clean);
    },
    clean,
    restore() {
      globalThis.fetch = own;
    },
  };
}

/** Limits the wait for a body that stays open after the check. */
async function bodyTimeout(): Promise<string> {
  await new Promise((resolve) => {
    setTimeout(resolve, 2000).unref();
  });
  return "< (the body was not read to its end)";
}

function textOf(body: unknown): string {
  return typeof body === "string" ? body : "";
}

function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  const rest = line.length - BODY_CHARACTERS_MAX;
  return rest > 0 ? `${line.slice(0, BODY_CHARACTERS_MAX)}… (${rest} more characters)` : line;
}
