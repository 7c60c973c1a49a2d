/** A client of the document about clients: its words and its blocks, in their order. */
export type ClientBlocks = {
  readonly name: string;
  readonly parts: readonly { readonly kind: "text" | "code"; readonly text: string }[];
};

/** What stands for the region's address in the blocks as they are served. */
export const ORIGIN = "https://this-region.invalid";
/** What stands for the reader's key in them. */
export const YOUR_KEY = "YOUR_KEY";
