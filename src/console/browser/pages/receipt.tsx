import { isUnit, UNIT_TABLE } from "../../../shared/units.ts";
import type { Generation } from "../api/types.ts";
import { countText, formatExact, formatCharge } from "../lib/money.ts";
import { formatDuration } from "../lib/time.ts";
import { fixedRead, useRead } from "../state/reads.ts";
import { goTo, hrefOf, useQuery } from "../state/route.ts";
import { useKeyNames } from "../state/spend.ts";
import { Badge, CopyButton, Facts, Time, Button } from "../ui/basics.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { STATUSES, Status, purposeText, tagsText } from "../ui/request-table.tsx";
import { describeRequest } from "../ui/request-sentence.ts";
import { ReadResult, Remedy } from "../ui/states.tsx";
import { usd } from "../ui/table.tsx";

const TOKENS = {
  input: "input",
  cached: "input from a cache",
  cache_write: "input written to a cache",
  cache_write_hour: "input cached for an hour",
  output: "output",
} as const;

export type NeighborIds = readonly [newer: string | null, older: string | null];

type ReceiptProps = {
  id: string;
  known: Generation | undefined;
  beside: NeighborIds;
  onClose: () => void;
};
/** A request with its cost. `known` is the request from a list, if any. */
export function Receipt({ id, known, beside, onClose }: ReceiptProps) {
  const read = useRead(known === undefined ? "GET /v1/generations/{id}" : null, { path: { id } });
  return (
    <Dialog title="Request" onClose={onClose} wide>
      <ReadResult read={known ? fixedRead(known) : read} height={420}>
        {(generation) => <RequestBill of={generation} />}
      </ReadResult>
      <div class="actions end">
        <NeighborButton id={beside[0]} text="← Newer" />
        <NeighborButton id={beside[1]} text="Older →" />
      </div>
    </Dialog>
  );
}

function NeighborButton({ id, text }: { id: string | null; text: string }) {
  const [query] = useQuery();
  return (
    <Button
      text={text}
      disabled={id === null}
      onClick={() => id !== null && goTo(["requests", id], query)}
    />
  );
}

function RequestBill({ of }: { of: Generation }) {
  const sum = of.lines.reduce((total, { micro }) => total + micro, 0);
  const held = of.held_micro ?? 0;
  const left = held - of.cost_micro;
  return (
    <>
      <p class="said">{describeRequest(of)}</p>
      <p>
        <Status of={of} /> <Time at={of.created_at} /> <code class="small">{of.request_id}</code>{" "}
        <CopyButton text={of.request_id} label="Copy ID" />{" "}
        <CopyButton text={markdownOf(of)} label="Copy as Markdown" />
        {of.error !== null && <a href={`/docs/use/errors#${of.error.code}`}>About this error</a>}
      </p>
      {of.status === "refused" && of.error !== null && (
        <p class="muted">
          <Remedy {...of.error} keyId={of.key_id} externalId={of.external_id} />
        </p>
      )}
      <Attempts of={of} />
      <div class="table">
        <table class="bill">
          <tbody>
            <BillRow what="Hold" micros={held} />
            {of.lines.map(({ what, tokens, price, micro }) => (
              <tr key={what}>
                <td>{isUnit(what) ? UNIT_TABLE[what].name : TOKENS[what]}</td>
                <td class="right number">{countText(tokens, nounOf(what))}</td>
                <td class="right number wide-only">× {formatCharge(price)} a million</td>
                <td class="right number">{formatExact(micro)}</td>
              </tr>
            ))}
            {sum > 0 && (
              <BillRow what="Total, rounded up to a micro-credit" micros={Math.ceil(sum - 1e-9)} />
            )}
            {of.absorbed_micro > 0 && <BillRow what="Absorbed" micros={of.absorbed_micro} />}
            <tr class="sum">
              <td colSpan={2}>Charged</td>
              <td class="wide-only" />
              <td class="right">{formatExact(of.cost_micro)}</td>
            </tr>
            {of.status !== "held" && left > 0 && <BillRow what="Released" micros={left} />}
          </tbody>
        </table>
      </div>
      {of.estimated && (
        <p class="notice gap">
          ▲ The provider reported no usage: these tokens are estimated from the text.
        </p>
      )}
      <RequestFacts of={of} />
    </>
  );
}

function nounOf(what: string): string {
  const name = isUnit(what) ? UNIT_TABLE[what].name : "tokens";
  return name.replace(/.* (?=tokens)|s$/g, "");
}

function markdownOf(of: Generation): string {
  const facts = [
    ["Request", of.request_id],
    ["Time", of.created_at],
    ["Status", STATUSES[of.status][0]],
    ["Error", of.error && `${of.error.code} (${of.error.status}): ${of.error.message}`],
    ["Model", of.model ?? of.asked_model],
    ["Path", of.door],
    ["Charged", `$${usd(of.cost_micro) ?? ""}`],
    ...of.attempts.map(({ route: to, outcome, why, status, started_ms, ended_ms }, i) => [
      `Attempt ${i + 1}`,
      `${to} ${outcome} ${why ?? ""} ${status ?? ""} ${started_ms ?? "?"} to ${ended_ms ?? "?"} ms`,
    ]),
    ...of.skipped.map(({ route: to, why }) => ["Skipped", `${to} ${why}`]),
  ];
  return facts
    .filter(([, what]) => what !== null)
    .map(([name, what]) => `- **${name ?? ""}**: ${what ?? ""}`)
    .join("\n");
}

const OUTCOMES = {
  served: "served",
  failed: "failed",
  left: "client disconnected",
  stopped: "stopped",
} as const;

function Attempts({ of: { attempts, skipped, duration_ms } }: { of: Generation }) {
  if (attempts.length + skipped.length === 0) return null;
  const whole = Math.max(1, duration_ms ?? 0, ...attempts.map(({ ended_ms }) => ended_ms ?? 0));
  return (
    <div class="table">
      <table aria-label="Providers called">
        <tbody>
          {attempts.map(({ route: to, outcome, why, status, started_ms, ended_ms }, i) => (
            <tr key={i}>
              <td>{to}</td>
              <td>
                <Badge tone={outcome === "failed" ? "bad" : "plain"}>{OUTCOMES[outcome]}</Badge>{" "}
                {why !== null && why !== String(status) && <code class="small">{why}</code>}{" "}
                {status}
              </td>
              <td class="waterfall wide-only">
                <span
                  class={`fill ${outcome === "failed" ? "bad" : ""}`}
                  style={{
                    marginLeft: `${((started_ms ?? 0) / whole) * 100}%`,
                    width: `${Math.max(1, (((ended_ms ?? whole) - (started_ms ?? 0)) / whole) * 100)}%`,
                  }}
                />
              </td>
              <td class="right number">
                {started_ms === null || ended_ms === null
                  ? ""
                  : formatDuration(ended_ms - started_ms)}
              </td>
            </tr>
          ))}
          {skipped.map(({ route: to, why }) => (
            <tr key={to}>
              <td>{to}</td>
              <td>
                <Badge tone="plain">skipped</Badge> <code class="small">{why}</code>
              </td>
              <td class="wide-only" />
              <td />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function BillRow({ what, micros }: { what: string; micros: number }) {
  return (
    <tr>
      <td colSpan={2}>{what}</td>
      <td class="wide-only" />
      <td class="right number">{formatExact(micros)}</td>
    </tr>
  );
}

function wayOf({ streamed }: Generation): string | null {
  if (streamed === null) return null;
  return streamed ? "streamed" : "as JSON";
}

function purposeFacts({ purpose, quota_micro: quota, tags }: Generation) {
  return [
    ["Purpose", purpose && `${purposeText(purpose)}. ${purpose.description}`],
    ["Counted in quotas", quota > 0 ? formatExact(quota) : null],
    ["Tags", tagsText({ tags })],
  ] as const;
}

function RequestFacts({ of }: { of: Generation }) {
  const nameOfKey = useKeyNames();
  const facts = [
    ["Model", of.model],
    ["Requested model", of.asked_model === of.model ? null : of.asked_model],
    ...purposeFacts(of),
    ["Path", of.door],
    [
      "Client disconnected after",
      of.client_left_ms === null ? null : formatDuration(of.client_left_ms),
    ],
    ["Served by", of.provider && `${of.provider}, ${(of.region ?? "").toUpperCase()}`],
    ["Price from", of.price_from?.slice(0, 10) ?? null],
    ["Price list", of.price_list],
    ["Answer", wayOf(of)],
    ["Finish reason", of.finish_reason],
    ["TTFT", of.first_byte_ms === null ? null : formatDuration(of.first_byte_ms)],
    ["Duration", of.duration_ms === null ? null : formatDuration(of.duration_ms)],
    ["Reasoning tokens", of.reasoning_tokens ? countText(of.reasoning_tokens, "token") : null],
    [
      "Key",
      of.key_id === null ? null : <a href={hrefOf(["keys", of.key_id])}>{nameOfKey(of.key_id)}</a>,
    ],
    [
      "End user",
      of.external_id && <a href={hrefOf(["end-users", of.external_id])}>{of.external_id}</a>,
    ],
  ] as const;
  const curl = `curl ${location.origin}/v1/chat/completions \\
  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\
  -d '{"model":"${of.model ?? ""}","stream":${of.streamed ?? false},"messages":[{"role":"user","content":"..."}]}'`;
  return (
    <>
      <Facts facts={facts} />
      {of.model !== null && of.purpose === null && (
        <p class="small muted">
          <CopyButton text={curl} label="Copy as curl" /> without its prompt, because prompts aren't
          stored.
        </p>
      )}
    </>
  );
}
