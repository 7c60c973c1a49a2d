import { OWN_FILE } from "./files.ts";
import { error, findingsThatHold, warning } from "./finding.ts";
import type { Finding } from "./finding.ts";
import { addressesOf, peersOf } from "./settings.ts";
import type { Settings } from "./settings.ts";

/** Checks this region's addresses and those in PEERS. */
export function addressFindings(settings: Settings): Finding[] {
  return [...ownFindings(settings), ...peerFindings(settings)];
}

function ownFindings({ env, config }: Settings): Finding[] {
  const where = `[env.${env}] routes`;
  const addresses = addressesOf(config);
  if (addresses.length === 0) {
    const remedy = 'Add { pattern = "<host name>", custom_domain = true }.';
    return [error(where, "name no address, so nobody reaches the region", remedy)];
  }
  return addresses.flatMap(({ host, isCustomDomain }) =>
    findingsThatHold(
      [
        isExample(host),
        error(where, `name ${host}, an example`, `Put your own host name into ${OWN_FILE}.`),
      ],
      [
        !isCustomDomain,
        error(
          where,
          `name ${host}, which is no custom domain: a request from a Worker in the same zone would go past it`,
          "Add custom_domain = true.",
        ),
      ],
    ),
  );
}

function peerFindings({ env, config, others }: Settings): Finding[] {
  const peers = peersOf(config);
  if (peers.length === 0) {
    const remedy =
      'Set PEERS to [{"region":"...","url":"https://..."}] when there is another region.';
    return [warning("PEERS", "names no region, so global keys work at home only", remedy)];
  }
  return peers.flatMap((peer) => {
    const host = URL.parse(peer.url)?.host;
    if (host === undefined) return []; // `parseConfig` reports it
    if (isExample(host)) {
      return [
        error(
          "PEERS",
          `names ${host}, an example`,
          `Put the address of ${peer.region} into ${OWN_FILE}.`,
        ),
      ];
    }
    const own = [...others.values()].filter(({ vars }) => vars["REGION"] === peer.region);
    const hosts = own.flatMap(addressesOf).map((one) => one.host);
    if (hosts.length === 0 || hosts.includes(host)) return [];
    return [
      error(
        "PEERS",
        `says that ${peer.region} answers on ${host}, but its routes do not name it`,
        `Make PEERS of ${env} and routes of ${peer.region} the same.`,
      ),
    ];
  });
}

function isExample(host: string): boolean {
  return /(^|\.)example\.(com|net|org)(:\d+)?$/.test(host);
}
