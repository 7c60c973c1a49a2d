import { timestamp } from "../../shared/clock.ts";
import type { StreamedRow, StreamPage } from "../../shared/contracts/usage-stream.ts";
import type { GenerationRecord } from "../../shared/contracts/wallet.ts";
import { derivedEventId, SYSTEM_ACTOR, USAGE_SETTLED } from "../../shared/event.ts";
import { COUNTED_UNITS, promptTokens } from "../../shared/usage.ts";

/** A ledger page as a webhook message. `summary` is the stored version, without amounts. */
type UsageMessage = {
  readonly id: string;
  readonly body: string;
  readonly summary: string;
};

/** Returns the message of a page. The same rows always get the same ID. */
export function usageMessage(orgId: string, { from, rows }: StreamPage): UsageMessage {
  const id = derivedEventId(USAGE_SETTLED, orgId, ...rows.map((row) => row.id));
  const last = rows.at(-1);
  const message = {
    id,
    type: USAGE_SETTLED,
    created_at: timestamp(last?.createdAt ?? from.madeAt),
    actor: SYSTEM_ACTOR,
    subject: orgId,
  };
  const range = {
    ledger_since: timestamp(from.madeAt),
    first_seq: rows[0]?.firstSeq ?? from.seq,
    last_seq: last?.seq ?? from.seq,
  };
  return {
    id,
    body: JSON.stringify({ ...message, data: { ...range, events: rows.map(rowView) } }),
    summary: JSON.stringify({ ...message, data: { ...range, count: rows.length } }),
  };
}

function rowView(row: StreamedRow): object {
  return {
    id: row.id,
    kind: row.kind,
    first_seq: row.firstSeq,
    seq: row.seq,
    amount_micro: row.amountMicro,
    balance_micro: row.balanceMicro,
    settled_at: timestamp(row.createdAt),
    reference: row.reference,
    request: row.request === null || row.request === undefined ? null : requestView(row.request),
  };
}

function requestView(request: GenerationRecord): object {
  const { usage, purpose } = request;
  const counted = COUNTED_UNITS.filter((unit) => (usage[unit] ?? 0) > 0);
  return {
    created_at: timestamp(request.createdAt),
    key_id: request.keyId,
    external_id: request.externalId,
    model: request.model,
    provider: request.provider,
    region: request.region,
    prompt_tokens: promptTokens(usage),
    cached_tokens: usage.cacheRead,
    cache_write_tokens: usage.cacheWrite,
    completion_tokens: usage.output,
    reasoning_tokens: usage.reasoning,
    units: Object.fromEntries(counted.map((unit) => [unit, usage[unit]])),
    cost_micro: request.costMicro,
    quota_micro: purpose?.charged ?? 0,
    estimated: request.estimated,
    tags: request.tags ?? {},
  };
}
