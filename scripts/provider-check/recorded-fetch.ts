/** The traffic in order. Bodies are cut, keys removed. */
export type Recorder = {
  /** The lines since the last call of `take`. */
  take(): Promise<string[]>;
  /** A text without the keys: upstreams and models may repeat them. */
  clean(text: string): string;
  /** Puts the program's own `fetch` back. */
  restore(): void;
};

const BODY_CHARACTERS_MAX = 1500;
const SECRET_CHARACTERS_MIN = 6;

/** Records every request from now on; `secrets` are shown as [key] wherever they stand. */
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
    // The copy is read beside the adapter. A stream that the adapter leaves ends both.
    const copy = response.clone();
    lines.push(
      copy.text().then(
        (text) => `< ${response.status} ${shortened(text)}`,
        () => `< ${response.status} (the body broke off)`,
      ),
    );
    return response;
  };
  return {
    async take() {
      const taken = lines;
      lines = [];
      const settled = await Promise.all(taken.map((line) => Promise.race([line, patience()])));
      return settled.map(clean);
    },
    clean,
    restore() {
      globalThis.fetch = own;
    },
  };
}

/** A body that is still open after the check is not waited for. */
async function patience(): Promise<string> {
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
