/** The recipients of the simulated applications: invented people at invented mail servers, each with a behaviour. */

import type { Behaviour } from './behaviours.ts';
import type { Random } from './random.ts';
import { RECIPIENT_DOMAINS } from './servers.ts';

export type Language = 'en' | 'de' | 'fr' | 'ja' | 'he' | 'ar';

export interface Recipient {
  readonly address: string;
  readonly name: string;
  readonly language: Language;
  readonly behaviour: Behaviour;
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

const LANGUAGES = { en: 70, de: 12, fr: 6, ja: 6, he: 3, ar: 3 } as const;

/** Stores the behaviour of each recipient, so that every attempt for a recipient meets the same behaviour. */
export class Recipients {
  readonly #chance: Random;
  readonly #known = new Map<string, Recipient>();
  readonly #reusable: Recipient[] = [];
  /** Number of recipients with the same name and mail server; a number makes their addresses unique. */
  readonly #namesakes = new Map<string, number>();

  constructor(chance: Random) {
    this.#chance = chance;
  }

  /** A recipient with this behaviour; with `fine`, often an existing one. */
  pick(fate: Behaviour): Recipient {
    const known = this.#reusable.length;
    if (fate === 'fine' && known > 40 && this.#chance.next() < 0.5) return this.#chance.pick(this.#reusable);
    const person = this.#make(fate);
    if (fate === 'fine') this.#reusable.push(person);
    return person;
  }

  /** Null for an unknown address, such as one of a visitor. */
  behaviourOf(address: string): Behaviour | null {
    return this.find(address)?.behaviour ?? null;
  }

  find(address: string): Recipient | null {
    return this.#known.get(address) ?? null;
  }

  #make(behaviour: Behaviour): Recipient {
    const language = this.#chance.weighted(LANGUAGES);
    const [given, family, local] = this.#chance.pick(NAMES[language]);
    const domain = this.#chance.pick(RECIPIENT_DOMAINS);
    const namesakes = (this.#namesakes.get(local + domain) ?? 0) + 1;
    this.#namesakes.set(local + domain, namesakes);
    const address = `${local}${namesakes === 1 ? '' : namesakes}@${domain}`;
    const person = { address, name: `${given} ${family}`, language, behaviour };
    this.#known.set(address, person);
    return person;
  }
}
