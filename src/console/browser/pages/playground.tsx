import { latestOf, useModels } from "../state/reads.ts";
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import type { CallFailure } from "../api/client.ts";
import type { Generation, Model } from "../api/types.ts";
import { streamCompletion } from "../api/stream.ts";
import { formatCount, formatCharge } from "../lib/money.ts";
import { codeExamplesOf } from "../lib/copies.ts";
import { formatDuration } from "../lib/time.ts";
import { createCell, useCell } from "../state/cell.ts";
import { waitForFinalBill, loadNewestRequests } from "../state/bill.ts";
import { describeModelPrices } from "../lib/model-prices.ts";
import { hrefOf, useQuery } from "../state/route.ts";
import { hasLimitedKey, isViewingCustomer, session, useSession } from "../state/session.ts";
import {
  CodeBlock,
  Facts,
  PageHead,
  Money,
  Panel,
  Button,
  Checkbox,
  Notice,
} from "../ui/basics.tsx";
import { Field, Input, Select } from "../ui/dialog.tsx";
import { FailureNotice, ReadResult } from "../ui/states.tsx";

const DEFAULT_REQUEST = {
  system: "",
  text: "Say hello in one sentence.",
  tools: "",
  cap: "200",
  stream: true,
};
type PlaygroundRequest = Readonly<typeof DEFAULT_REQUEST>;
const typed = createCell<PlaygroundRequest>(DEFAULT_REQUEST);
// One session's input must never appear in the next session.
session.watch(() => session.get() || typed.set(DEFAULT_REQUEST));
const NOTHING = {
  text: "",
  thought: "",
  calls: "",
  route: "",
  granted: null as string | null,
  dropped: null as string | null,
  firstMs: null as number | null,
  tookMs: null as number | null,
  usage: null as { input: number; output: number; costMicro: number } | null,
  failure: undefined as CallFailure | undefined,
  broken: null as ComponentChildren,
};
type Answer = Readonly<typeof NOTHING>;

export function Playground() {
  const isReadOnly = isViewingCustomer(useSession());
  const text = "You can't send requests in the customer view.";
  return isReadOnly ? <PageHead title="Playground" text={text} /> : <Requesting />;
}

function Requesting() {
  const [query] = useQuery();
  const read = useModels();
  const chat = latestOf(read)?.data.filter(({ kind }) => kind === "chat") ?? [];
  const model = chat.find(({ id }) => id === (query["model"] ?? "smart")) ?? chat[0];
  const asked = useCell(typed);
  const { answer, ask, stop, busy } = useAnswer();
  const body = bodyOf(model?.id ?? "", asked);
  return (
    <>
      <PageHead
        title="Playground"
        text={
          model &&
          `This spends credits: at most about ${formatCharge(maxCostMicros(model, asked))} for this request.`
        }
      />
      <div class="halves">
        <Panel title="Request">
          <ReadResult read={read} height={480}>
            {() => (
              <RequestForm
                models={chat}
                model={model}
                busy={busy}
                body={body}
                onAsk={ask}
                onStop={stop}
              />
            )}
          </ReadResult>
        </Panel>
        <Panel title="Response">
          <ResponseView answer={answer} busy={busy} />
        </Panel>
      </div>
      {model && typeof body !== "string" && <CopyAs body={body} />}
    </>
  );
}

type RequestFormProps = {
  models: readonly Model[];
  model: Model | undefined;
  busy: boolean;
  body: object | string;
  onAsk: (body: object) => void;
  onStop: () => void;
};
function RequestForm({ models, model, busy, body, onAsk, onStop }: RequestFormProps) {
  const [, update] = useQuery();
  const asked = useCell(typed);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (typeof body !== "string") onAsk(body);
      }}
    >
      <Select
        label="Model"
        hint={model ? describeModelPrices(model) : ""}
        value={model?.id ?? ""}
        options={models.map(({ id }) => [id, id])}
        onPick={(id) => update({ model: id })}
      />
      <Inputs asked={asked} onChange={(next) => typed.set(next)} />
      {typeof body === "string" && <p class="bad-text">■ {body}</p>}
      <div class="actions end">
        <Button text="Stop" disabled={!busy} onClick={onStop} />
        <button type="submit" class="primary" disabled={busy || !model || typeof body === "string"}>
          Run
        </button>
      </div>
    </form>
  );
}

type InputsProps = { asked: PlaygroundRequest; onChange: (asked: PlaygroundRequest) => void };
function Inputs({ asked, onChange }: InputsProps) {
  const area = (name: "system" | "text" | "tools", rows: number) => (
    <textarea
      rows={rows}
      value={asked[name]}
      onInput={(event) => onChange({ ...asked, [name]: event.currentTarget.value })}
    />
  );
  return (
    <>
      <Field label="System">{area("system", 2)}</Field>
      <Field label="User">{area("text", 6)}</Field>
      <details>
        <summary>Tools</summary>
        <Field label="Tools, as JSON" hint="A JSON array for the tools field">
          {area("tools", 6)}
        </Field>
      </details>
      <Input
        label="Max output tokens"
        type="number"
        min="1"
        step="1"
        value={asked.cap}
        onText={(cap) => onChange({ ...asked, cap })}
      />
      <Checkbox
        text="Stream response"
        isOn={asked.stream}
        onChange={(isOn) => onChange({ ...asked, stream: isOn })}
      />
    </>
  );
}

function bodyOf(
  model: string,
  { system, text, tools, cap, stream }: PlaygroundRequest,
): object | string {
  let list: unknown;
  try {
    list = tools.trim() === "" ? undefined : JSON.parse(tools);
  } catch {
    return "The tools aren't valid JSON.";
  }
  if (list !== undefined && !Array.isArray(list)) return "The tools must be a JSON array.";
  return {
    model,
    messages: [
      ...(system === "" ? [] : [{ role: "system", content: system }]),
      { role: "user", content: text },
    ],
    ...(list !== undefined && { tools: list }),
    ...(cap.trim() !== "" && { max_tokens: Number(cap) }),
    ...(stream && { stream: true, stream_options: { include_usage: true } }),
  };
}

/** Returns the maximum cost in micro-credits: one token per byte, and the full output cap. */
function maxCostMicros(
  { pricing, max_output_tokens: most }: Model,
  { system, text, tools, cap }: PlaygroundRequest,
) {
  const input = new TextEncoder().encode(system + text + tools).length + 50;
  const output = Math.min(cap.trim() === "" ? Infinity : Number(cap), most ?? 4096);
  return Math.ceil((input * Number(pricing.prompt) + output * Number(pricing.completion)) * 1e6);
}

function useAnswer() {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [busy, setBusy] = useState(false);
  const running = useRef<AbortController | null>(null);
  const ask = async (body: object): Promise<void> => {
    const stopping = new AbortController();
    running.current = stopping;
    setBusy(true);
    let shown: Answer = NOTHING;
    const show = (next: Partial<Answer>): void => {
      if (running.current === stopping) setAnswer((shown = { ...shown, ...next }));
    };
    show({});
    const earlier = await loadNewestRequests();
    let id = "";
    let why = "";
    const startedAt = performance.now();
    const sinceMs = (): number => performance.now() - startedAt;
    try {
      for await (const told of streamCompletion(body, stopping.signal)) {
        if (told.kind === "head") {
          id = told.id;
          show({ route: told.route, granted: told.grantedMaxTokens, dropped: told.dropped });
        } else if (told.kind === "usage") show({ usage: told });
        else if (told.kind === "failed") show({ failure: told.failure });
        else {
          const field = told.kind;
          const known = field === "thought" || field === "calls" ? shown[field] : shown.text;
          show({ [field]: known + told.text, firstMs: shown.firstMs ?? sinceMs() });
        }
      }
    } catch {
      why = stopping.signal.aborted ? "Stopped" : "Connection lost";
      show({ broken: `${why}. The received part is charged, and the final cost follows.` });
    }
    show({ tookMs: sinceMs() });
    setBusy(false);
    if (why === "") return;
    const final = await waitForFinalBill(earlier, id);
    show({
      broken: <BrokenNotice why={why} isBilled={final !== undefined} />,
      ...usageOfBill(final),
    });
  };
  return {
    answer,
    busy,
    ask: (body: object) => void ask(body),
    stop: () => running.current?.abort(),
  };
}

function usageOfBill(final: Generation | null | undefined): Partial<Answer> {
  if (final === undefined) return {};
  const { prompt_tokens, completion_tokens, cost_micro } = final ?? {};
  return {
    usage: {
      input: prompt_tokens ?? 0,
      output: completion_tokens ?? 0,
      costMicro: cost_micro ?? 0,
    },
  };
}

function BrokenNotice({ why, isBilled }: { why: string; isBilled: boolean }) {
  if (isBilled) return <>{why}: this is the final bill.</>;
  const who = session.get();
  const [page, name] = who && hasLimitedKey(who) ? ["key", "This key"] : ["requests", "Requests"];
  return (
    <>
      {why}: the received part is charged. See <a href={hrefOf([page])}>{name}</a>.
    </>
  );
}

function ResponseView({ answer, busy }: { answer: Answer | null; busy: boolean }) {
  if (answer === null) return <p class="muted">The response and its cost appear here.</p>;
  const { text, thought, calls, failure, broken, firstMs, tookMs, usage, route } = answer;
  const { granted, dropped } = answer;
  const seconds = tookMs === null || firstMs === null ? 0 : (tookMs - firstMs) / 1000;
  const facts = [
    ["TTFT", firstMs === null ? "" : formatDuration(firstMs)],
    ["Duration", tookMs === null ? "" : formatDuration(tookMs)],
    ["Tokens", usage ? `${formatCount(usage.input)} in, ${formatCount(usage.output)} out` : ""],
    [
      "Tokens per second",
      usage && seconds > 0 ? formatCount(Math.round(usage.output / seconds)) : "",
    ],
    ["Cost", usage ? <Money micros={usage.costMicro} /> : ""],
    ["Route", route],
    ["Allowed output", granted === null ? "" : `${granted} tokens: less than requested`],
    ["Ignored fields", dropped ?? ""],
  ] as const;
  return (
    <>
      {thought !== "" && (
        <details>
          <summary>Thoughts</summary>
          <p class="answer muted">{thought}</p>
        </details>
      )}
      <p class="answer" aria-live="polite" aria-busy={busy}>
        {text}
      </p>
      {calls !== "" && <pre class="code">{calls}</pre>}
      {failure && <FailureNotice failure={failure} />}
      {broken && <Notice>{broken}</Notice>}
      <Facts facts={facts} />
    </>
  );
}

function CopyAs({ body }: { body: object }) {
  const [query, update] = useQuery();
  const copies = codeExamplesOf(body, location.origin);
  const shown = copies.find(({ name }) => name === query["as"]) ?? copies[0];
  return (
    <Panel
      title="Code"
      aside={
        <select
          aria-label="Language"
          value={shown?.name}
          onChange={(event) => update({ as: event.currentTarget.value })}
        >
          {copies.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      }
    >
      {shown && <CodeBlock text={shown.text} />}
    </Panel>
  );
}
