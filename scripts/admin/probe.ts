/** The result of a paid request to a region. `status` is null if nothing responded. */
export type Probe = {
  readonly region: string;
  readonly status: number | null;
  readonly ms: number;
  readonly cost_micro: number | null;
  readonly request_id: string | null;
  /** The text of a response that isn't a completion, else "". */
  readonly message: string;
};

const TIMEOUT_MS = 60_000;
const OUTPUT_TOKENS = 16;

/**
 * Sends a paid request for one short completion to each address, one after the other. Never throws.
 */
export async function probe(
  places: readonly { readonly region: string; readonly url: string }[],
  paying: { readonly key: string; readonly model: string },
): Promise<readonly Probe[]> {
  const probes: Probe[] = [];
  for (const { region, url } of places) {
    const begun = performance.now();
    const answer = await completion(url, paying);
    probes.push({ region, ms: Math.round(performance.now() - begun), ...answer });
  }
  return probes;
}

async function completion(
  url: string,
  { key, model }: { readonly key: string; readonly model: string },
): Promise<Omit<Probe, "region" | "ms">> {
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model,
        max_tokens: OUTPUT_TOKENS,
        messages: [{ role: "user", content: "Say: ok" }],
      }),
      redirect: "manual", // the key is sent only to the given address
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await response.text();
    const cost = response.headers.get("x-cost-micro");
    return {
      status: response.status,
      cost_micro: cost === null ? null : Number(cost),
      request_id: response.headers.get("x-request-id"),
      message: response.ok ? "" : messageIn(text),
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { status: null, cost_micro: null, request_id: null, message: reason };
  }
}

function messageIn(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } };
    return typeof error?.message === "string" ? error.message : "not an error from Turnpike";
  } catch {
    return "not JSON, so not a response from the Worker";
  }
}
