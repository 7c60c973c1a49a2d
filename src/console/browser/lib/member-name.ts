const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Returns a short name for a member's ID, and any other name unchanged. */
export function memberName(name: string): string {
  return UUID.test(name) ? `member ${name.slice(0, 8)}` : name;
}
