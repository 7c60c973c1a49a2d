import type { KeySecret } from "../shared/config/config.ts";
import { isSameSecret, computeHmac } from "../accounts/keys/api-key.ts";
import type { Region } from "../shared/regions.ts";

const cookieName = (region: Region): string => `__Host-turnpike-${region}-known`;
const ATTRIBUTES = "HttpOnly; Secure; SameSite=Lax; Path=/; Max-Age=31536000";
/** Maximum number of people in a browser's cookie. */
const PEOPLE_MAX = 5;

/**
 * Reports whether a person has used this browser before. Returns the updated cookie, with one tag
 * per person. It is SameSite=Lax, because a login ends with a redirect from another site.
 */
export async function recordBrowser(
  cookies: string,
  { region, keySecrets }: { readonly region: Region; readonly keySecrets: readonly KeySecret[] },
  personId: string,
): Promise<{ readonly isKnown: boolean; readonly cookie: string }> {
  const cookieMatch = new RegExp(`(?:^|;)\\s*${cookieName(region)}=([0-9a-f.]{1,400})(?:;|$)`).exec(
    cookies,
  );
  const earlierTags = (cookieMatch?.[1] ?? "")
    .split(".")
    .filter((tag) => tag.length === TAG_LENGTH);
  const tags = await Promise.all(keySecrets.map((secret) => tagOf(secret, region, personId)));
  const isOfPerson = (tag: string): boolean => tags.some((one) => isSameSecret(one, tag));
  const others = earlierTags.filter((tag) => !isOfPerson(tag));
  const newTags = [...tags.slice(0, 1), ...others].slice(0, PEOPLE_MAX);
  return {
    isKnown: earlierTags.some(isOfPerson),
    cookie: `${cookieName(region)}=${newTags.join(".")}; ${ATTRIBUTES}`,
  };
}

const TAG_LENGTH = 64;

async function tagOf(secret: KeySecret, region: Region, personId: string): Promise<string> {
  return (await computeHmac(secret, "browser", `${region} ${personId}`)).toHex();
}
