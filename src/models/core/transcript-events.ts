import { END_EVENT } from "./frame-reader.ts";
import { textOf } from "./json-value.ts";
import type { ProviderResponse, StreamEvent } from "./provider.ts";

export function transcriptEvents({ body, usage }: ProviderResponse): StreamEvent[] {
  const { text: transcript } = body;
  const text = textOf(transcript);
  const delta = { type: "transcript.text.delta", delta: text };
  const doneEvent = { type: "transcript.text.done", text };
  return [
    { kind: "native", event: delta, text, finish: null },
    ...(usage === null ? [] : [{ kind: "usage", usage } as const]),
    { kind: "native", event: doneEvent, text: "", finish: "stop" },
    END_EVENT,
  ];
}
