import { env } from "cloudflare:workers";
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { expect } from "vitest";
import { app } from "../../src/app.ts";
import type { IsolateMetrics, MetricValues } from "../../src/shared/contracts/metrics.ts";
import { ADMIN_TOKEN, bindingsWith, send } from "./client.ts";

/**
 * Returns an isolate with a separate metrics object, by name: its counts, and the region's metrics.
 * `changes` override the tests' bindings.
 */
export function separateIsolate(
  name: string = crypto.randomUUID(),
  changes: Readonly<Record<string, unknown>> = {},
) {
  const stub = env.REGION_METRICS.getByName(`test-${name}`);
  let added = 0;
  const add = (series: MetricValues, view: IsolateMetrics) => {
    added++;
    return stub.add(series, view);
  };
  const methods = { add, read: () => stub.read(), speeds: () => stub.speeds() };
  const bindings = bindingsWith({ ...changes, REGION_METRICS: { getByName: () => methods } });
  const ask = async (path: string, key: string, body?: object): Promise<Response> => {
    const context = createExecutionContext();
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const request = new Request(`https://eu.test${path}`, { headers, ...init });
    const response = await app.fetch(request, bindings, context);
    const copy = new Response(await response.text(), response);
    await waitOnExecutionContext(context); // the counts are transferred after the response
    return copy;
  };
  const metrics = async (): Promise<string> => {
    const response = await send("/admin/v1/metrics", { key: ADMIN_TOKEN, bindings });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    await scheduler.wait(0); // after one turn of the event loop, its own counts are in transit
    return response.text();
  };
  return { ask, metrics, bindings, batches: () => added };
}
