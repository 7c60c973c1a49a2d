const NAME_MAX = 60;

export function removeSpecialCharacters(name: string): string {
  const plain = name.replaceAll(/[^\p{L}\p{N} ._-]/gu, "").trim();
  return plain.slice(0, NAME_MAX) || "an organization";
}
