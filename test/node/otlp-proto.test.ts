import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { selectMeteredRequests, findUsageFormat } from "../../src/events/webhooks/usage-formats.ts";
import { micros } from "../../src/shared/money.ts";
import { GENERATION_RECORD } from "../fixtures/generation-record.ts";

/** A Python with `opentelemetry-proto` (PyPI, 1.45.2), in OTLP_PYTHON. */
const PYTHON = process.env["OTLP_PYTHON"];

/**
 * Parses a body strictly as protobuf's JSON, which uses base64 for OTLP's hex IDs. Prints the
 * spans' values.
 */
const PARSE = `
import base64, json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
body = json.load(sys.stdin)
for resource in body["resourceSpans"]:
    for scope in resource["scopeSpans"]:
        for span in scope["spans"]:
            for name in ("traceId", "spanId", "parentSpanId"):
                if name in span:
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
request = json_format.Parse(json.dumps(body), ExportTraceServiceRequest(), ignore_unknown_fields=False)
spans = [s for r in request.resource_spans for p in r.scope_spans for s in p.spans]
def value(v):
    kind = v.WhichOneof("value")
    one = getattr(v, kind)
    return [value(each) for each in one.values] if kind == "array_value" else one
print(json.dumps([{
    "trace": s.trace_id.hex(), "parent": s.parent_span_id.hex(), "length": len(s.span_id), "name": s.name,
    "kind": s.kind, "ms": (s.end_time_unix_nano - s.start_time_unix_nano) / 1e6,
    "attributes": {a.key: value(a.value) for a in s.attributes},
} for s in spans]))
`;

function bodyOf(): string {
  const format = findUsageFormat("otlp");
  if (format === null) throw new Error("no format");
  const row = {
    kind: "usage" as const,
    firstSeq: 1,
    seq: 1,
    amountMicro: micros(-7),
    balanceMicro: micros(0),
    createdAt: Date.now(),
    reference: null,
  };
  const trace = `${"a".repeat(32)}-${"b".repeat(16)}`;
  const full = { trace, tags: { team: 'ä"' }, streamed: true, firstByteMs: 1500 };
  const rows = [
    { ...row, id: "req_1", request: { ...GENERATION_RECORD, ...full } },
    { ...row, id: "req_2", request: { ...GENERATION_RECORD, kind: "rerank", externalId: null } },
  ];
  return format.body(selectMeteredRequests(rows, format, {}), {});
}

function parsed(body: string): unknown {
  const output = execFileSync(String(PYTHON), ["-c", PARSE], { input: body, stdio: "pipe" });
  return JSON.parse(output.toString());
}

it.skipIf(PYTHON === undefined)(
  `OpenTelemetry's protobuf definition accepts the traces${PYTHON === undefined ? " (skipped: OTLP_PYTHON isn't set)" : ""}`,
  () => {
    expect(parsed(bodyOf())).toMatchObject([
      {
        trace: "a".repeat(32),
        parent: "b".repeat(16),
        length: 8,
        name: "chat sandbox/echo",
        kind: 3,
        ms: 2,
        attributes: {
          "gen_ai.usage.input_tokens": 4,
          "gen_ai.usage.cost": 0.000007,
          "gen_ai.request.stream": true,
          "gen_ai.response.finish_reasons": ["stop"],
          "turnpike.amount_micro": 7,
          "turnpike.tag.team": 'ä"',
        },
      },
      { parent: "", name: "rerank sandbox/echo" },
    ]);
    expect(() => parsed(bodyOf().replace('"kind":3', '"kind":3,"color":"red"'))).toThrow("color");
  },
);
