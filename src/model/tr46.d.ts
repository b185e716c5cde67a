/** The types of the functions that Postrider uses from the package `tr46`, which contains no types. */
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
  /** Returns the domain in A-labels, or null if the domain is not valid according to UTS 46. */
  export function toASCII(domain: string, options?: Tr46Options): string | null;
}
