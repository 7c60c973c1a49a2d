import type { Generation } from "../api/types.ts";
import { counted, exact, spent } from "../lib/money.ts";
import { took } from "../lib/time.ts";
import { useRead } from "../state/reads.ts";
import { hrefOf } from "../state/route.ts";
import { useKeyNames } from "../state/spend.ts";
import { Copy, Facts, Time } from "../ui/basics.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Status } from "../ui/request-table.tsx";
import { Shown } from "../ui/states.tsx";

const WORDS = {
  input: "input",
  cached: "input from a cache",
  cache_write: "input written to a cache",
  cache_write_hour: "input cached for an hour",
  output: "output",
} as const;

/** One request as a small bill. `known`: what a list said of it, which is all for one that was not charged. */
export function Receipt({
  id,
  known,
  onClose,
}: {
  id: string;
  known: Generation | undefined;
  onClose: () => void;
}) {
  const read = useRead(known === undefined ? "GET /v1/generations/{id}" : null, { path: { id } });
  return (
    <Dialog title="Request" onClose={onClose} wide>
      {known ? (
        <Bill of={known} />
      ) : (
        <Shown read={read} height={420}>
          {(generation) => <Bill of={generation} />}
        </Shown>
      )}
    </Dialog>
  );
}

function Bill({ of }: { of: Generation }) {
  const sum = of.lines.reduce((total, { micro }) => total + micro, 0);
  const held = of.held_micro ?? 0;
  const left = held - of.cost_micro;
  return (
    <>
      <p>
        <Status of={of.status} /> <Time at={of.created_at} />{" "}
        <code class="small">{of.request_id}</code> <Copy text={of.request_id} label="Copy id" />
      </p>
      <div class="table">
        <table class="bill">
          <tbody>
            <BillRow what="Held before it was sent" micros={held} />
            {of.lines.map(({ what, tokens, price, micro }) => (
              <tr key={what}>
                <td>{WORDS[what]}</td>
                <td class="right number">{counted(tokens, "token")}</td>
                <td class="right number wide-only">× {spent(price)} a million</td>
                <td class="right number">{exact(micro)}</td>
              </tr>
            ))}
            {sum > 0 && (
              <BillRow what="Sum, rounded up to a micro" micros={Math.ceil(sum - 1e-9)} />
            )}
            {of.absorbed_micro > 0 && (
              <BillRow what="Not charged: beyond what was held" micros={of.absorbed_micro} />
            )}
            <tr class="sum">
              <td colSpan={2}>Charged</td>
              <td class="wide-only" />
              <td class="right">{exact(of.cost_micro)}</td>
            </tr>
            {of.status !== "held" && left > 0 && <BillRow what="Given back" micros={left} />}
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

function BillRow({ what, micros }: { what: string; micros: number }) {
  return (
    <tr>
      <td colSpan={2}>{what}</td>
      <td class="wide-only" />
      <td class="right number">{exact(micros)}</td>
    </tr>
  );
}

function wayOf({ streamed }: Generation): string | null {
  if (streamed === null) return null;
  return streamed ? "as a stream" : "as JSON";
}

function RequestFacts({ of }: { of: Generation }) {
  const nameOfKey = useKeyNames();
  const facts = [
    ["Model", of.model],
    ["Served by", of.provider && `${of.provider}, ${(of.region ?? "").toUpperCase()}`],
    ["Answer", wayOf(of)],
    ["Ended with", of.finish_reason],
    ["First byte", of.first_byte_ms === null ? null : took(of.first_byte_ms)],
    ["Took", of.duration_ms === null ? null : took(of.duration_ms)],
    ["Of it reasoning", of.reasoning_tokens ? counted(of.reasoning_tokens, "token") : null],
    [
      "Key",
      of.key_id === null ? null : <a href={hrefOf(["keys", of.key_id])}>{nameOfKey(of.key_id)}</a>,
    ],
    ["End user", of.external_id],
    ...of.failed_attempts.map(
      ({ route, why }, i) => [`Attempt ${i + 1} failed`, `${route}: ${why}`] as const,
    ),
  ] as const;
  const curl = `curl ${location.origin}/v1/chat/completions \\
  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\
  -d '{"model":"${of.model ?? ""}","stream":${of.streamed ?? false},"messages":[{"role":"user","content":"..."}]}'`;
  return (
    <>
      <Facts facts={facts} />
      {of.model !== null && (
        <p class="small muted">
          <Copy text={curl} label="Copy as curl" /> without its prompt: none is kept here.
        </p>
      )}
    </>
  );
}
