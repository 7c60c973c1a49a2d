/**
 * Whether `Authorization` is `Bearer <ADMIN_TOKEN>`: the scheme in any case, one space, the token to
 * the letter. Compares digests in constant time, so neither length nor content of the token leaks.
 */
export async function isOperator(
  authorization: string | null,
  adminToken: string,
): Promise<boolean> {
  const token = /^bearer (.+)$/is.exec(authorization ?? "")?.[1] ?? "";
  const [sent, expected] = await Promise.all([digest(token), digest(adminToken)]);
  return crypto.subtle.timingSafeEqual(sent, expected) && adminToken !== "";
}

function digest(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
}
