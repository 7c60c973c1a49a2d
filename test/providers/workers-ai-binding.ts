import type { AiBinding } from "../../src/shared/config/config.ts";
import { createWorkersAiProvider } from "../../src/models/providers/workers-ai.ts";

/** The binding as in workerd (src/cloudflare/internal/ai-api.ts) for a raw response. */
export const BINDING: AiBinding = {
  run(model, inputs, options) {
    const { signal, ...rest } = options as { signal?: AbortSignal; returnRawResponse?: boolean };
    if (rest.returnRawResponse !== true) throw new Error("JSON and streams look alike without it");
    return fetch("https://workers-binding.ai/run?version=3", {
      method: "POST",
      headers: { "content-type": "application/json", "cf-consn-model-id": model },
      body: JSON.stringify({ inputs, options: rest }),
      ...(signal !== undefined && { signal }),
    });
  },
};

export const WORKERS_AI_PROVIDER = createWorkersAiProvider(BINDING);
