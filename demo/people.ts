/** Whom the played applications write to: made-up people at made-up mail servers, and what fate their mail has. */
import type { Chance } from './chance.ts';
import type { Fate } from './fates.ts';
import { RECIPIENT_DOMAINS } from './servers.ts';

export type Language = 'en' | 'de' | 'fr' | 'ja' | 'he' | 'ar';

export interface Person {
  readonly address: string;
  readonly name: string;
  readonly language: Language;
  readonly fate: Fate;
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

/** Keeps who has which fate, so that a later try of a mail request meets the same server in the same mood. */
export class People {
  readonly #chance: Chance;
  readonly #known = new Map<string, Person>();
  readonly #well: Person[] = [];
  /** How many have the same name and mail server: what tells their addresses apart. */
  readonly #namesakes = new Map<string, number>();

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** Somebody with this fate; with `fine`, often somebody who has had mail before. */
  meet(fate: Fate): Person {
    const known = this.#well.length;
    if (fate === 'fine' && known > 40 && this.#chance.next() < 0.5) return this.#chance.pick(this.#well);
    const person = this.#make(fate);
    if (fate === 'fine') this.#well.push(person);
    return person;
  }

  /** Null for an address that is nobody's here: a visitor's own mail. */
  fateOf(address: string): Fate | null {
    return this.find(address)?.fate ?? null;
  }

  find(address: string): Person | null {
    return this.#known.get(address) ?? null;
  }

  #make(fate: Fate): Person {
    const language = this.#chance.weighted(LANGUAGES);
    const [given, family, local] = this.#chance.pick(NAMES[language]);
    const domain = this.#chance.pick(RECIPIENT_DOMAINS);
    const namesakes = (this.#namesakes.get(local + domain) ?? 0) + 1;
    this.#namesakes.set(local + domain, namesakes);
    const address = `${local}${namesakes === 1 ? '' : namesakes}@${domain}`;
    const person = { address, name: `${given} ${family}`, language, fate };
    this.#known.set(address, person);
    return person;
  }
}
