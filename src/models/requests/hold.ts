import type { Failure, Result } from "../../shared/failure.ts";
import { refuse, success } from "../../shared/failure.ts";
import { evictOldest } from "../../shared/evict-oldest.ts";
import { CANDIDATES_MAX } from "../../shared/policy.ts";
import type { RouteCandidate } from "../../shared/policy.ts";
import { micros } from "../../shared/money.ts";
import { callObjectWithRetries } from "../../shared/reach-object.ts";
import type { ObjectCallResult } from "../../shared/reach-object.ts";
import type { HoldGrant, HoldRequest } from "../../shared/contracts/wallet.ts";
import { supportsNativeRequest } from "./bound-request.ts";
import { getModelOptions, applyPricing, listRoutesSkippedByGrant } from "./model-options.ts";
import { computeAffordableCap, computeCostBounds, computeRouteCap } from "./hold-bounds.ts";
import type { OutputCap } from "./hold-bounds.ts";
import { decideResponseStorage } from "./store-response.ts";
import type {
  ModelOption,
  PaidRequest,
  PaidRoute,
  Run,
  RunServices,
  WalletGetter,
} from "./paid-request.ts";
import { voidHoldThroughOutbox } from "./settle.ts";
import { formatRouteName } from "../routing/route-health.ts";

const HOLD_ATTEMPTS_MAX = 2;
const REMEMBERED_KEYS_MAX = 10_000;

/**
 * Places a run's hold in the wallet or through the key's home region. Returns the routes that the
 * hold covers. Fails if the wallet's result is lost. The outbox then voids any hold that exists.
 */
export async function holdCredits(run: Run): Promise<Result<readonly PaidRoute[]>> {
  const { caller, progress, services } = run;
  const walletCall = await holdAtCurrentPrices(run);
  const result = walletCall.unanswered ? refuse(walletCall.failure) : walletCall.result;
  if (result.ok) {
    const { tokens } = result.value;
    if (progress.admitted !== null && tokens !== undefined) {
      progress.admitted = { ...progress.admitted, tokens };
    }
    progress.granted = result.value.granted;
    decideResponseStorage(run, result.value);
    const routes = grantedRoutes(run, result.value);
    progress.skipped = listRoutesSkippedByGrant(run.request, result.value, routes);
    return success(routes);
  }
  services.callers.recordRefusal({ hash: caller.keyHash, shown: caller.shown }, result.failure);
  if (walletCall.unanswered) await voidHoldThroughOutbox(run);
  return result;
}

async function holdAtCurrentPrices(run: Run): Promise<ObjectCallResult<HoldGrant>> {
  const { caller, request, services } = run;
  const walletCall = await holdWithCandidates(run);
  const failure = walletFailure(walletCall);
  if (failure?.kind !== "price_list_differs") return walletCall;
  const pricing = await services.corrected(caller.orgId, failure.list, request.pricing.at);
  // An attempt without a response may have placed a hold, so this request fails. The next request
  // uses the correct price list.
  if (walletCall.unanswered) return walletCall;
  if (!pricing.ok) return { unanswered: false, result: pricing };
  const excluded = applyPricing(request, pricing.value);
  return excluded === null ? holdWithCandidates(run) : { unanswered: false, result: excluded };
}

/**
 * Places a hold. Sends the candidate routes in a second call if the wallet's policies need them.
 */
async function holdWithCandidates(run: Run): Promise<ObjectCallResult<HoldGrant>> {
  const { caller, services } = run;
  const { keysNeedingCandidates: keyHashes } = services;
  const walletCall = await holdOnce(run);
  if (walletFailure(walletCall)?.kind !== "candidates_required") return walletCall;
  evictOldest(keyHashes, REMEMBERED_KEYS_MAX);
  keyHashes.add(caller.keyHash);
  // An attempt without a response may have placed a hold.
  return walletCall.unanswered ? walletCall : holdOnce(run);
}

function routeCandidatesOf(request: PaidRequest): RouteCandidate[] {
  const options = getModelOptions(request);
  return options
    .flatMap((option) => {
      const { sent, model, routes, prompt, cap } = option;
      const optionTokens = options.length > 1 ? { tokens: tokenBoundsOf(option) } : null;
      return routes.map((route) => {
        const { least, sure, most } = computeCostBounds([route], prompt, cap);
        const { provider, dataRegion: region } = route;
        const bounds = { sent, model: model.id, provider, region, least, sure, most };
        return optionTokens === null ? bounds : Object.assign(bounds, optionTokens);
      });
    })
    .slice(0, CANDIDATES_MAX);
}

function tokenBoundsOf({ prompt: { estimate }, cap }: ModelOption): HoldRequest["tokens"] {
  const outputs = (each: number): number => estimate + each * choiceCount(cap);
  return { prompt: estimate, least: outputs(cap?.least ?? 0), most: outputs(cap?.whole ?? 0) };
}

function walletFailure(walletCall: ObjectCallResult<unknown>): Failure | null {
  if (walletCall.unanswered) return walletCall.failure;
  return walletCall.result.ok ? null : walletCall.result.failure;
}

function holdOnce(run: Run): Promise<ObjectCallResult<HoldGrant>> {
  const { home, wallet } = run.services;
  return home === null ? holdInRegion(run, wallet) : home.authorize(holdRequestOf(run));
}

function holdRequestOf({ caller, id, idempotency, request, services }: Run): HoldRequest {
  const options = getModelOptions(request);
  const { cap, model, sent, user } = request;
  // With several models, the wallet checks each one by name.
  const hasCandidates = options.length > 1 || services.keysNeedingCandidates.has(caller.keyHash);
  const maximumOf = (of: (option: ModelOption) => number) => Math.max(...options.map(of));
  return {
    id,
    least: micros(maximumOf(({ bounds }) => bounds.least)),
    sure: micros(maximumOf(({ bounds }) => bounds.sure)),
    most: micros(maximumOf(({ bounds }) => bounds.most)),
    hasCap: cap === null || cap.isAsked,
    tokens: {
      prompt: maximumOf((option) => tokenBoundsOf(option).prompt),
      least: maximumOf((option) => tokenBoundsOf(option).least),
      most: maximumOf((option) => tokenBoundsOf(option).most),
    },
    model: { sent, id: model.id },
    externalId: user,
    keyId: caller.keyId,
    peer: services.home !== null,
    idempotency,
    priceList: request.pricing.list,
    affinity: request.conversationHash,
    ...(hasCandidates && { candidates: routeCandidatesOf(request) }),
  };
}

function choiceCount(cap: OutputCap | null): number {
  return cap?.choices ?? 1;
}

/** Places a hold in this region. The same call admits or rejects an unchecked key. */
function holdInRegion(run: Run, walletAt: WalletGetter): Promise<ObjectCallResult<HoldGrant>> {
  const { caller, admitsWithHold, progress, timers } = run;
  const { keyHash, orgId, shown } = caller;
  const request = holdRequestOf(run);
  const placeHold = async (attempt: number): Promise<Result<HoldGrant>> => {
    const wallet = walletAt(orgId, attempt);
    if (!admitsWithHold || progress.admitted !== null) return wallet.hold(request, keyHash, shown);
    const answer = await wallet.admitAndHold(keyHash, request, shown);
    if (!answer.ok) return answer;
    progress.admitted = { caller, rate: answer.value.admitted };
    return answer.value.held;
  };
  return callObjectWithRetries(placeHold, { after: timers.after, attemptsMax: HOLD_ATTEMPTS_MAX });
}

/**
 * Returns the routes that a grant covers and policies allow. The route with a warm prompt cache is
 * first.
 */
function grantedRoutes({ request, services }: Run, grant: HoldGrant): PaidRoute[] {
  const { routes: allowed, warmRoute } = grant;
  const { native } = request;
  const options = getModelOptions(request);
  let at = 0;
  const isAllowed = (option: ModelOption): boolean =>
    allowed?.includes(at++) ?? option === options[0];
  const [first = [], ...others] = options.map((option) =>
    paidRoutes(option, grant, {
      native,
      providers: services.providers,
      routes: option.routes.filter(() => isAllowed(option)),
    }),
  );
  return [
    ...(warmRoute === undefined ? first : moveWarmRouteFirst(first, warmRoute)),
    ...others.flat(),
  ];
}

function paidRoutes(
  option: ModelOption,
  { granted, tokens, tokensGranted }: HoldGrant,
  {
    native,
    providers,
    routes,
  }: Pick<PaidRequest, "native" | "routes"> & Pick<RunServices, "providers">,
): PaidRoute[] {
  const { prompt, cap } = option;
  const grantedTokens = tokens?.granted ?? tokensGranted ?? Infinity;
  const tokensLeft = Math.floor((grantedTokens - prompt.estimate) / choiceCount(cap));
  return routes.flatMap((route) => {
    const { upstreamId } = route;
    const provider = providers.get(route.provider);
    const affordable = cap === null ? null : computeAffordableCap(route, prompt, cap, granted);
    if (provider === undefined || (cap !== null && affordable === null)) return [];
    const isLowered =
      cap !== null &&
      affordable !== null &&
      affordable < computeRouteCap(route, { prompt, cap, allowed: cap.whole });
    return {
      route,
      option,
      model: option.model.id,
      provider,
      upstreamId,
      cap: affordable === null ? null : Math.min(affordable, tokensLeft),
      capLoweredByMoney: isLowered && affordable <= tokensLeft,
      native:
        native !== null && supportsNativeRequest(provider, route, native) ? native : undefined,
    };
  });
}

function moveWarmRouteFirst(routes: PaidRoute[], warm: string): PaidRoute[] {
  const isWarm = ({ route }: PaidRoute) => formatRouteName(route) === warm;
  return [...routes.filter(isWarm), ...routes.filter((route) => !isWarm(route))];
}
