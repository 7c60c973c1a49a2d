import { expect, it } from "vitest";
import { hasShape } from "./shape.ts";

const KEY = "svc_sk_eu_live_aoZrPA7592i2zI8Wak8sAMpMXQ0VTZmxaWI2kteD";
const ID = "req_0Vbc79IFeL5qpT8Q7zoitnNS";

it.each([
  ["another key, id, time and number", `${KEY} ${ID} 12 ms`, `svc_sk_gbl_us_live_b ${ID} 3.5 ms`],
  [
    "JSON with other values, on several lines",
    '{"a":1,"b":["x"]}',
    '{\n  "a": 2,\n  "b": ["x"]\n}',
  ],
  ["an event with another value", 'data: {"a":1}\n\ndata: [DONE]', 'data: {"a":7}\ndata: [DONE]'],
  ["wider columns", "a   1\n-----\n", "a 22\n---"],
  ["any lines where the page omits some", "a\nb\nc\nd", "a\n...\nd"],
  ["no lines where the page may omit some", "a\nd", "a\n...\nd"],
])(
  "a command's output matches a documented output of the same shape: %s",
  (_what, printed, answer) => {
    expect(hasShape(printed, answer)).toBe(true);
  },
);

it.each([
  ["another status", "HTTP/1.1 200 OK", "HTTP/1.1 201 OK"],
  ["only another status", "401", "200"],
  ["an additional field", '{"a":1,"b":2}', '{"a":1}'],
  ["a missing field", '{"a":1}', '{"a":1,"b":2}'],
  ["another type", '{"a":"1"}', '{"a":1}'],
  ["another word", '{"a":"balance"}', '{"a":"quota"}'],
  ["another boolean", '{"revoked":false}', '{"revoked":true}'],
  ["an additional line", "a\nb", "a"],
  ["a missing line", "a", "a\nb"],
  ["nothing", "", "a"],
])(
  "a command's output doesn't match a documented output of a different shape: %s",
  (_what, printed, answer) => {
    expect(hasShape(printed, answer)).toBe(false);
  },
);
