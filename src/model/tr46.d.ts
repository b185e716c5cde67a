/** The part of `tr46` that is used here; the package ships no types of its own. */
declare module 'tr46' {
  export interface Tr46Options {
    readonly checkBidi?: boolean;
    readonly checkHyphens?: boolean;
    readonly checkJoiners?: boolean;
    readonly useSTD3ASCIIRules?: boolean;
    readonly verifyDNSLength?: boolean;
    readonly transitionalProcessing?: boolean;
    readonly ignoreInvalidPunycode?: boolean;
  }
  /** The domain in A-labels, or null where it is no valid domain by UTS 46. */
  export function toASCII(domain: string, options?: Tr46Options): string | null;
}
