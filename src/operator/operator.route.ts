import type { HonoBase } from "hono/hono-base";
import { createModelNameLookup } from "../models/catalog/catalog.ts";
import type { Catalog } from "../models/catalog/catalog.ts";
import type { Config } from "../shared/config/config.ts";
import { fail, rejectIf } from "../shared/http/context.ts";
import type { AppContext, AppEnv } from "../shared/http/context.ts";
import { readBody, respond } from "../shared/http/endpoint.ts";
import { refuseOtherMethods } from "../shared/http/not-found.ts";
import { success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import type { Region } from "../shared/regions.ts";
import { elapsedMs, now } from "../shared/clock.ts";
import { resolvePaymentId } from "../money/payments/refunding.ts";
import { createStripeClient } from "../money/payments/stripe.ts";
import { createMailSender } from "../accounts/people/mail.ts";
import type { RouteHealth } from "../models/routing/route-health.ts";
import { probePeer } from "../regions/peer-call.ts";
import { findOperator, operatorByRequest } from "./operator-token.ts";
import { OPERATOR_ROUTES } from "./endpoints.ts";
import type { OperatorEndpoint, OperatorContext } from "./operator-context.ts";
import { objectsOf } from "../shared/contracts/objects.ts";
import { logWarning, errorMessageOf } from "../shared/log.ts";
import { toStorageFailure } from "../shared/storage-failure.ts";
import { formatPrometheusText } from "../events/metrics/prometheus.ts";
import type { RegionCounts } from "../shared/contracts/metrics.ts";
import { computeAgeGauges, sumIsolateGauges } from "../events/metrics/series.ts";
import { createKeyServices } from "../accounts/keys/revocation.ts";
import { takeWaitingEventsLater } from "../accounts/organizations/member.route.ts";

type DeploymentOf = (config: Config) => {
  readonly catalogAt: (nowMs: number) => Catalog;
  readonly health: RouteHealth;
  readonly providers: ReadonlyMap<string, unknown>;
};
type Deployment = ReturnType<DeploymentOf>;

/** Time of each region's last response to this isolate (Unix ms). */
const lastOkMs = new Map<Region, number>();

export function addOperatorRoutes(app: HonoBase<AppEnv>, deploymentOf: DeploymentOf): void {
  app.use("/admin/v1/*", requireOperator);
  for (const row of OPERATOR_ROUTES) {
    app.on(row.method, [row.path], (c) => handleOperatorCall(c, row, deploymentOf(c.var.config)));
  }
  app.get("/admin/v1/metrics", metricsRoute);
  refuseOtherMethods(app, [...OPERATOR_ROUTES, { method: "GET", path: "/admin/v1/metrics" }]);
}

const requireOperator = rejectIf(async (c) => {
  const authorization = c.req.header("authorization") ?? null;
  const { operators } = c.var.config;
  const operator =
    operatorByRequest.get(c.req.raw) ?? (await findOperator(authorization, operators));
  if (operator === null) return { kind: "invalid_api_key" };
  c.set("operator", operator);
  return null;
});

async function handleOperatorCall(
  c: AppContext,
  row: OperatorEndpoint,
  deployment: Deployment,
): Promise<Response> {
  const { role } = c.var.operator;
  if (!row.roles.includes(role)) {
    return fail(c, { kind: "role_required", roles: row.roles });
  }
  const body = await readOptionalBody(c, row);
  if (!body.ok) return fail(c, body.failure);
  const context = createContext(c, deployment);
  const params: Readonly<Record<string, string>> = c.req.param();
  const idempotencyKey = c.req.header("idempotency-key") ?? null;
  const requested = { params, url: c.req.url, body: body.value, idempotencyKey };
  return respond(c, await row.handle({ ...context, ...requested }));
}

async function readOptionalBody(
  c: AppContext,
  { method }: OperatorEndpoint,
): Promise<Result<unknown>> {
  const takesBody = method === "POST" || method === "PATCH";
  const isEmpty = c.req.raw.body === null || c.req.header("content-length") === "0";
  if (!takesBody || isEmpty) return success(null);
  const body = await readBody(c, "operators");
  return body.ok ? success(body.value.json) : body;
}

function createContext(
  c: AppContext,
  { catalogAt, health, providers }: Deployment,
): OperatorContext {
  const { config } = c.var;
  const actor = { kind: "operator", id: c.var.operator.name } as const;
  const services = createKeyServices(c.env, config, actor);
  const { now: nowMs } = services;
  const catalog = catalogAt(nowMs);
  return {
    ...services,
    actor,
    version: config.version,
    requestId: c.var.requestId,
    role: c.var.operator.role,
    priceLeadMs: config.numbers.PRICE_LEAD_S * 1000,
    companyDomains: config.companyDomains,
    mail: createMailSender(config.mail, (work) => c.executionCtx.waitUntil(work)),
    aliases: catalog.aliases,
    names: createModelNameLookup(catalog),
    breakers: health.unavailableRoutes(nowMs),
    providers: new Set(providers.keys()),
    models: catalog.models,
    checkPeer: async (region) => {
      const peer = config.peers.find((one) => one.region === region);
      if (peer === undefined) {
        return { url: null, fault: "it is not configured", rttMs: null, lastOkMs: null };
      }
      const callOptions = { requestId: c.var.requestId, now: () => now(c.env) };
      const startedMs = elapsedMs();
      const fault = await probePeer(peer, callOptions);
      if (fault === null) lastOkMs.set(region, now(c.env));
      const rttMs = fault === null ? Math.round(elapsedMs() - startedMs) : null;
      return { url: peer.url, fault, rttMs, lastOkMs: lastOkMs.get(region) ?? null };
    },
    paymentOf: async (id) => {
      const { payments } = config;
      return payments === null ? null : resolvePaymentId(createStripeClient(payments), id);
    },
    takeEvents: (orgId) => takeWaitingEventsLater(c, orgId),
  };
}

async function metricsRoute(c: AppContext): Promise<Response> {
  let counted: RegionCounts;
  try {
    counted = await objectsOf(c.env).metrics().read();
  } catch (error) {
    logWarning("operator_storage_failed", { path: "/metrics", reason: errorMessageOf(error) });
    return fail(c, toStorageFailure(error));
  }
  const { counters, gauges, jobs } = counted;
  const nowMs = now(c.env);
  const storedGauges = { ...gauges?.series, ...jobs.outboxes?.series };
  const currentGauges = {
    ...sumIsolateGauges(counted, nowMs),
    ...computeAgeGauges(counted, nowMs),
  };
  const text = formatPrometheusText({ ...counters, ...storedGauges, ...currentGauges });
  return c.body(text, 200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" });
}
