/** The row number of a mail request is its place among all: rows are appended in the order of acceptance, and an id needs no index. */
export { lastSeqAt, seqOf } from '../seq.ts';
