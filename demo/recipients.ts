/**
 * Generates the recipients of the simulated applications: invented persons at invented mail servers, each with a
 * behavior.
 */

import type { Behavior } from './behaviors.ts';
import type { Random } from './random.ts';
import { RECIPIENT_DOMAINS } from './servers.ts';

export type Language = 'en' | 'de' | 'fr' | 'ja' | 'he' | 'ar';

export interface Recipient {
  readonly address: string;
  readonly name: string;
  readonly language: Language;
  readonly behavior: Behavior;
}

const NAMES: Readonly<Record<Language, readonly (readonly [given: string, family: string, local: string])[]>> = {
  en: [
    ['Ada', 'Whitfield', 'ada.whitfield'],
    ['Grace', 'Okafor', 'grace.okafor'],
    ['Tom', 'Hughes', 'tom.hughes'],
    ['Priya', 'Raman', 'priya.raman'],
    ['Owen', 'Baxter', 'owen.baxter'],
    ['Sofia', 'Marino', 'sofia.marino'],
    ['Liam', 'Doyle', 'liam.doyle'],
    ['Nora', 'Lindqvist', 'nora.lindqvist'],
    ['Kofi', 'Mensah', 'kofi.mensah'],
    ['Maya', 'Castillo', 'maya.castillo'],
  ],
  de: [
    ['Jürgen', 'Weiß', 'juergen.weiss'],
    ['Annika', 'Schröder', 'annika.schroeder'],
    ['Käthe', 'Bäumler', 'kaethe.baeumler'],
  ],
  fr: [
    ['Zoé', 'Lefèvre', 'zoe.lefevre'],
    ['Benoît', 'Garçon', 'benoit.garcon'],
  ],
  ja: [
    ['陽子', '山本', 'yamamoto.yoko'],
    ['健', '佐藤', 'sato.ken'],
  ],
  he: [['נועה', 'לוי', 'noa.levi']],
  ar: [['ليلى', 'حداد', 'layla.haddad']],
};

const LANGUAGE_WEIGHTS = { en: 74, de: 12, fr: 7, ja: 1, he: 3, ar: 3 } as const;

/** Stores the behavior of each recipient, so that all attempts to a recipient have the same behavior. */
export class Recipients {
  readonly #random: Random;
  readonly #recipients = new Map<string, Recipient>();
  readonly #reusableRecipients: Recipient[] = [];
  /**
   * The number of recipients with the same name and mail server. The number becomes part of an address, so that
   * addresses are unique.
   */
  readonly #sameNameCounts = new Map<string, number>();

  constructor(random: Random) {
    this.#random = random;
  }

  /**
   * Returns a recipient with the given behavior and domain. If no domain is given, the function chooses a random
   * domain; for the behavior `accepting`, it instead often returns an existing recipient.
   */
  pickRecipient(behavior: Behavior, domain?: string): Recipient {
    if (domain !== undefined) return this.#create(behavior, domain);
    const reusableCount = this.#reusableRecipients.length;
    if (behavior === 'accepting' && reusableCount > 40 && this.#random.nextFraction() < 0.5)
      return this.#random.pick(this.#reusableRecipients);
    const recipient = this.#create(behavior, this.#random.pick(RECIPIENT_DOMAINS));
    if (behavior === 'accepting') this.#reusableRecipients.push(recipient);
    return recipient;
  }

  /** Returns the behavior of a recipient, or null for an unknown address, such as one that a visitor entered. */
  findBehavior(address: string): Behavior | null {
    return this.findRecipient(address)?.behavior ?? null;
  }

  findRecipient(address: string): Recipient | null {
    return this.#recipients.get(address) ?? null;
  }

  #create(behavior: Behavior, domain: string): Recipient {
    const language = this.#random.pickWeighted(LANGUAGE_WEIGHTS);
    const [given, family, local] = this.#random.pick(NAMES[language]);
    const sameNameCount = (this.#sameNameCounts.get(local + domain) ?? 0) + 1;
    this.#sameNameCounts.set(local + domain, sameNameCount);
    const address = `${local}${sameNameCount === 1 ? '' : sameNameCount}@${domain}`;
    const recipient = { address, name: `${given} ${family}`, language, behavior };
    this.#recipients.set(address, recipient);
    return recipient;
  }
}
