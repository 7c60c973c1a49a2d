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
    return [error(where, "contain no address, so nobody can reach the region", remedy)];
  }
  return addresses.flatMap(({ host, isCustomDomain }) =>
    findingsThatHold(
      [
        isExample(host),
        error(
          where,
          `contain ${host}, which is an example`,
          `Put your own host name into ${OWN_FILE}.`,
        ),
      ],
      [
        !isCustomDomain,
        error(
          where,
          `contain ${host}, which is not a custom domain: a request from a Worker in the same zone would bypass it`,
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
      'If there is another region, set PEERS to [{"region":"...","url":"https://..."}].';
    return [
      warning("PEERS", "contains no region, so global keys work only in their home region", remedy),
    ];
  }
  return peers.flatMap((peer) => {
    const host = URL.parse(peer.url)?.host;
    if (host === undefined) return []; // `parseConfig` reports it
    if (isExample(host)) {
      return [
        error(
          "PEERS",
          `contains ${host}, which is an example`,
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
        `has ${host} for ${peer.region}, but the routes of ${peer.region} don't contain it`,
        `Use the same host in PEERS of ${env} and in the routes of ${peer.region}.`,
      ),
    ];
  });
}

function isExample(host: string): boolean {
  return /(^|\.)example\.(com|net|org)(:\d+)?$/.test(host);
}
