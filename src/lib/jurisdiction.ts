/**
 * The namespace restricted to a jurisdiction, or as it is when none is configured: local workerd
 * does not implement jurisdictions and throws (cloudflare/workerd#4167).
 */
export function inJurisdiction<T extends Rpc.DurableObjectBranded | undefined>(
  namespace: DurableObjectNamespace<T>,
  jurisdiction: string | undefined,
): DurableObjectNamespace<T> {
  if (jurisdiction === undefined || jurisdiction === "") return namespace;
  return namespace.jurisdiction(jurisdiction as DurableObjectJurisdiction);
}
