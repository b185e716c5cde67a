/**
 * Defines the rules for the replies of next hops, as data. The rules that apply to every server are in src/classify.
 * The rules that apply only to the relay of one provider are in src/providers.
 */
import type { FailureCategory } from './failure.ts';
import type { Reason, Stage } from './outcome.ts';

export type ReplyRuleResult =
  | { readonly kind: 'permanent'; readonly reason: Reason; readonly suppress: boolean }
  | { readonly kind: 'temporary'; readonly reason: Reason; readonly scope: 'message' | 'transport' };

/** A rule that assigns an outcome to replies of a next hop. */
export interface ReplyRule {
  readonly name: string;
  /** The rule matches only replies at these stages. If absent, the rule matches replies at every stage. */
  readonly stages?: readonly Stage[];
  /** The rule matches only replies with these codes. If absent, the rule matches replies with any code. */
  readonly codes?: readonly number[];
  /**
   * Patterns of enhanced codes: `5.1.1` matches this code in every class, `5.7.` matches every code with this subject,
   * and the empty string matches a missing code.
   */
  readonly enhancedCodes?: readonly string[];
  /**
   * The rule matches only texts that contain one of these phrases. Phrases are in lower case and match whole words. A
   * phrase that ends with `*` also matches longer words. Addresses are not part of the text.
   */
  readonly phrases?: readonly string[];
  /** The rule matches no text that contains one of these phrases. */
  readonly exceptPhrases?: readonly string[];
  readonly result: ReplyRuleResult;
  /** The category of the failure. If absent, the reason of the result determines the category. */
  readonly category?: FailureCategory;
  /** Sample replies of real servers. Each sample begins with the stage and a space. */
  readonly samples: readonly string[];
}
