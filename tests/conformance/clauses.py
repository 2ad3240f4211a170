"""The contract, clause by clause; the keys are its sections."""

from tests.conformance.proofs import Proof

BIRTHS = "store/test_births.py::"
MOVES = "store/test_transitions.py::"
FENCE = "store/test_fence.py::"
ODD = "store/test_odd_calls.py::"
CANCEL = "store/test_cancel.py::"
LATCHES = "store/test_latches.py::"
CLAIMS = "store/test_claims.py::"
EXPIRY = "store/test_expiry.py::"
BEATS = "store/test_heartbeats.py::"
LOG = "store/test_transition_log.py::"
OUTPUTS = "store/test_outputs.py::"
GRAPH = "store/test_graph_queries.py::"
LOCKS = "store/test_locking_postgres.py::"
ENQUEUE = "store/test_transactional_enqueue.py::"
LOST_ANSWERS = "store/test_lost_answers.py::"
RETRIES = "decisions/test_retries.py::"
NODE = "decisions/test_node.py::"
WORKER_CANCEL = "worker/test_cancel.py::"
WORKER_OUTCOMES = "worker/test_outcomes.py::"
SHUTDOWN = "worker/test_shutdown.py::"
LOST = "worker/test_lost_leases.py::"

RETRY = "store/test_workflow_retry.py::"
WORKFLOWS = "store/test_workflows.py::"
WORKFLOW_ACTIONS = "store/test_workflow_actions.py::"
QUEUES = "store/test_queue_actions.py::"
HISTORY = "store/test_history_policy.py::"
OBSERVERS = "store/test_observers.py::"
DELIVERIES = "store/test_deliveries.py::"
PURGE = "store/test_purging.py::"
SCHEDULES = "store/test_schedules.py::"
BULK = "store/test_bulk_operations.py::"

MACHINE = (
    Proof("2 B1", "Without live parents a job is born Scheduled, due as given.",
          (BIRTHS + "test_b1_a_job_without_parents_is_scheduled_and_due_as_given",
           BIRTHS + "test_b1_a_job_whose_parents_all_succeeded_is_scheduled",
           BIRTHS + "test_b1_an_any_terminal_job_whose_parents_all_ended_is_scheduled")),
    Proof("2 B2", "With live parents it waits for each of them.",
          (BIRTHS + "test_b2_a_job_with_live_parents_waits_for_each_of_them",)),
    Proof("2 B3", "On-success below a failed parent it is born Cancelled, with its cause.",
          (BIRTHS + "test_b3_one_failed_parent_cancels_an_on_success_job_at_once",
           BIRTHS + "test_b3_names_the_failed_parent_with_the_lowest_enqueue_number")),
    Proof("2 edge 1", "The last parent releases; due at the later of its own time and now.",
          (MOVES + "test_edge_1_a_released_job_is_due_at_the_later_of_its_own_time_and_now",)),
    Proof("2 edge 2", "A failed parent or an operator cancels a waiting job and closes its edges.",
          (MOVES + "test_edge_2_a_waiting_job_is_cancelled_by_its_parents_failure",
           MOVES
           + "test_edge_2_a_waiting_job_is_cancelled_by_an_operator_and_its_edges_close")),
    Proof("2 edge 3", "A claim raises attempt and claim number and sets owner and expiry.",
          (MOVES + "test_edge_3_a_claim_raises_attempt_and_claim_number_and_sets_the_lease",)),
    Proof("2 edge 4", "A Scheduled job is cancelled at once, also while it waits for a retry.",
          (MOVES
           + "test_edge_4_a_scheduled_job_is_cancelled_also_while_it_waits_for_a_retry",)),
    Proof("2 edge 5", "Success stores the output and settles the children.",
          (MOVES + "test_edge_5_success_stores_the_output_and_releases_the_children",)),
    Proof("2 edge 6", "A failure with a due time is Scheduled again.",
          (MOVES + "test_edge_6_a_failure_with_a_due_time_is_scheduled_again",)),
    Proof("2 edges 7-9", "The other ends keep their cause and settle the children.",
          (MOVES + "test_edges_7_8_9_end_the_job_with_its_cause_and_settle_the_children",)),
    Proof("2 edge 6'", "A lapse with attempts left goes back, its attempt not raised again.",
          (EXPIRY + "test_a_lapsed_lease_with_attempts_left_is_scheduled_again",)),
    Proof("2 edge 7'", "A lapse at the ceiling dead-letters and says whose lease it was.",
          (EXPIRY + "test_a_lapsed_lease_at_the_ceiling_dead_letters_and_says_whose_it_was",)),
    Proof("2 edges 10, 11", "Requeue gives a new life.",
          (MOVES + "test_edges_10_and_11_requeue_gives_a_new_life",)),
    Proof("2 edge 12", "A workflow retry gives ended members a new life.",
          (RETRY + "test_a_retry_moves_the_members_of_its_scope_and_runs_to_the_end",
           RETRY + "test_a_moved_member_begins_anew_but_for_what_makes_it_the_same_job")),
    Proof("2 no other edge", "Nothing else moves a job; a refused call writes nothing.",
          (MOVES + "test_no_other_call_moves_a_job_and_a_refused_one_writes_nothing",
           MOVES + "test_a_terminal_job_is_not_swept_renewed_or_settled_again")),
    Proof("2 fence", "An outcome applies only under owner, attempt, claim number and a live lease.",
          (FENCE + "test_a_single_mismatch_changes_nothing_at_all",
           FENCE + "test_a_microsecond_before_expiry_the_lease_still_holds",
           FENCE + "test_a_frozen_first_attempt_of_an_earlier_life_is_refused")),
    Proof("2 already applied", "An answer lost after the commit is recognised.",
          (FENCE + "test_a_repeated_report_is_answered_with_the_outcome_that_stood",
           FENCE
           + "test_what_was_applied_is_recognised_after_a_requeue_and_not_after_an_expiry")),
    Proof("2 odd calls", "Ids, parents, bounds and names: typed answers, in the stated order.",
          (ODD + "test_an_id_that_exists_is_a_duplicate_and_the_stored_job_stays",
           ODD + "test_checks_come_in_the_order_bounds_duplicate_parents",
           ODD + "test_an_unknown_parent_and_itself_as_parent_are_refused",
           ODD + "test_the_same_parent_twice_counts_once",
           ODD + "test_sixteen_distinct_parents_are_fine_and_seventeen_are_too_many",
           ODD + "test_names_that_no_store_may_hold_are_refused_by_field")),
    Proof("2 cancel", "Now, asked or refused; never forgotten; the first asker stands.",
          (CANCEL + "test_a_job_that_has_not_started_is_cancelled_now",
           CANCEL + "test_a_running_job_is_asked_and_keeps_the_first_asker",
           CANCEL + "test_an_ended_or_unknown_job_refuses_cancel_and_leaves_no_audit_row",
           CANCEL + "test_a_cancel_is_not_forgotten_when_the_attempt_fails_or_lapses",
           CANCEL + "test_at_the_ceiling_a_cancel_request_ends_dead_lettered_once",
           WORKER_CANCEL + "test_an_async_handler_is_interrupted_and_its_job_cancelled",
           WORKER_CANCEL + "test_returning_normally_after_the_token_fired_is_a_success")),
    Proof("2 requeue", "Dead-Lettered and Quarantined only; two at once: one wins.",
          (CANCEL + "test_requeue_refuses_every_other_state_and_leaves_no_audit_row",
           CANCEL
           + "test_of_two_operators_at_once_one_wins_and_the_other_is_told_what_it_met")),
    Proof("2 retries", "2, 4, 8 ... 300 s; no overflow; the stored policy decides.",
          (RETRIES + "test_the_default_delays_double_up_to_five_minutes",
           RETRIES + "test_no_policy_overflows_or_passes_its_cap",
           WORKER_OUTCOMES + "test_the_policy_stored_at_enqueue_decides_not_the_workers")),
    Proof("2 routing", "Unknown names and refused payloads are quarantined, attempt counted.",
          (WORKER_OUTCOMES + "test_an_unknown_wire_name_is_quarantined_and_its_attempt_counted",
           WORKER_OUTCOMES
           + "test_a_payload_its_type_refuses_is_quarantined_and_the_handler_never_called")),
    Proof("2 scope", "Each attempt has a scope of its own, closed before its outcome.",
          (WORKER_OUTCOMES
           + "test_each_attempt_gets_a_scope_of_its_own_closed_before_its_outcome",)),
)  # fmt: skip

DEPENDENCIES = (
    Proof("3 latch", "Up to 16 parents; each edge counts once, whoever ends together.",
          (LATCHES + "test_a_child_waits_for_the_last_of_its_sixteen_parents",
           LATCHES + "test_two_parents_that_end_in_one_batch_are_both_counted",
           LOCKS + "test_two_parents_of_one_child_that_end_together_count_both")),
    Proof("3 cascade", "One transaction, few statements; each job of a diamond once.",
          (LATCHES + "test_a_diamond_is_cancelled_once_each",
           LATCHES + "test_the_cascade_stops_at_an_any_terminal_child_which_is_released",
           LATCHES + "test_a_cascades_log_rows_come_in_enqueue_order",
           "store/test_cascades.py"
           "::test_ending_the_root_takes_the_same_statements_at_any_width",
           "store/test_cascades.py"
           "::test_ending_the_root_takes_the_same_statements_at_any_depth")),
    Proof("3 locking", "Enqueue, end and cascade held against each other: nothing stuck or lost.",
          (LOCKS
           + "test_an_end_waits_for_the_enqueue_that_holds_the_parent_and_settles_its_child",
           LOCKS + "test_an_enqueue_waits_for_the_end_of_its_parent_and_is_born_after_it",
           LOCKS + "test_a_cascade_waits_for_the_enqueue_of_a_grandchild_and_cancels_it_too",
           "store/test_locking_load.py"
           "::test_a_random_load_ends_without_a_deadlock_and_with_a_clean_audit")),
    Proof("3 output", "Kept with success only; read by transitive dependents only.",
          (OUTPUTS + "test_an_output_is_kept_with_success_only",
           GRAPH + "test_an_output_is_read_from_any_ancestor",
           GRAPH + "test_who_is_no_ancestor_has_no_output_to_read",
           GRAPH + "test_two_ancestors_of_one_name_are_ambiguous")),
)  # fmt: skip

WORK = (
    Proof("4 claims", "By due time, then enqueue number; never two claimers; paused gives nothing.",
          (CLAIMS + "test_a_claim_takes_due_jobs_by_due_time_then_enqueue_number",
           CLAIMS + "test_two_claimers_never_get_the_same_job",
           CLAIMS + "test_a_paused_queue_gives_nothing_until_it_is_resumed",
           CLAIMS + "test_a_limit_of_one_lets_one_job_run_whoever_claims_at_once")),
    Proof("4 pause and limit", "Once answered, no claim that breaks them commits.",
          (QUEUES + "test_a_pause_waits_for_the_claim_under_way_and_no_later_one_commits",
           QUEUES + "test_a_claim_waits_for_the_pause_under_way_and_obeys_it",
           QUEUES + "test_a_limit_waits_for_the_claim_under_way_and_counts_its_jobs",
           "worker/test_queue_limits.py"
           "::test_four_nodes_never_go_beyond_the_limit_in_force_while_it_changes")),
    Proof("4 sweep", "Writes only where claim number and expiry are as it read them.",
          (EXPIRY + "test_a_sweep_writes_only_where_claim_and_expiry_are_as_it_read_them",)),
    Proof("4 heartbeats", "A thread of their own; never wait for a row; never renew what lapsed.",
          (LOST
           + "test_a_handler_that_blocks_the_event_loop_for_three_leases_loses_nobodys_lease",
           BEATS + "test_what_is_not_held_is_lost_and_stays_as_it_is",
           LOCKS + "test_a_callers_open_transaction_delays_its_leased_parent_alone")),
    Proof("4 poison", "A job with two lapses in a row runs alone of its kind.",
          (LOST + "test_suspects_run_one_at_a_time_beside_other_jobs",
           EXPIRY + "test_lapses_count_in_a_row_and_an_outcome_resets_them")),
    Proof("4 time", "The log's time never goes back.",
          (MOVES + "test_times_in_the_log_never_go_back_when_the_clock_does",)),
    Proof("4 outcomes", "Batches, each row fenced on its own, answers in input order.",
          (FENCE + "test_each_report_of_a_batch_is_fenced_on_its_own_and_answered_in_order",
           FENCE + "test_a_claim_reported_twice_in_one_batch_counts_once")),
    Proof("4 dispatch", "Strict or smooth weighted, never idle while a served queue is ready.",
          ("decisions/test_dispatch.py"
           "::test_weights_of_five_one_one_give_the_classic_smooth_sequence",
           "decisions/test_dispatch.py"
           "::test_no_slot_stays_idle_while_a_served_queue_is_ready")),
    Proof("4 shutdown", "Drain, grace, tokens, flush, exit 0; what remains lapses at once.",
          (SHUTDOWN + "test_a_signal_drains_the_node_and_the_process_ends_with_code_0",
           SHUTDOWN + "test_a_handler_that_ignores_its_token_does_not_keep_the_process",
           NODE + "test_after_the_grace_time_tokens_fire_then_the_node_stops_without_the_stubborn",
           EXPIRY + "test_released_leases_lapse_at_once_and_are_swept")),
    Proof("4 store faults", "A node goes on by itself; lost answers are asked for again.",
          ("worker/test_postgres_restart.py"
           "::test_a_node_goes_on_under_load_and_nothing_is_lost_or_applied_twice",
           LOST_ANSWERS + "test_every_enqueue_whose_answer_was_lost_stands_once",
           LOST_ANSWERS
           + "test_a_database_that_stays_away_leaves_the_outcome_unknown_and_names_the_ids")),
    Proof("4 caller's connection", "Commits or rolls back with the caller's rows.",
          (ENQUEUE + "test_jobs_and_the_callers_rows_commit_or_roll_back_together",
           ENQUEUE + "test_a_connection_that_cannot_carry_the_jobs_is_refused",
           ENQUEUE
           + "test_a_busy_database_tells_the_caller_to_run_the_transaction_again")),
    Proof("5 log", "No committed row is forgotten; nobody's transaction stalls the others.",
          (LOG + "test_a_row_is_delivered_once_its_transaction_commits_and_stalls_nobody",
           LOG + "test_a_rolled_back_position_is_given_up",
           LOG + "test_an_unrelated_transaction_keeps_no_gap_open",
           LOG + "test_a_reader_older_than_what_is_kept_is_told",
           LOG + "test_no_committed_row_is_missed_and_nothing_stalls_under_load")),
    Proof("5 cap", "A job's log keeps its last 64 rows, without a hole.",
          (OUTPUTS + "test_a_jobs_log_keeps_its_last_64_rows_without_a_hole",)),
    Proof("5 failure detail", "Cut on a code point, cleaned for any database, never fatal.",
          (WORKER_OUTCOMES + "test_failure_texts_are_cut_and_cleaned_for_any_database",
           WORKER_OUTCOMES + "test_an_exception_that_cannot_be_shown_is_described")),
    Proof("5 history policy", "Off leaves a hole in which ordinals count on; nothing else stops.",
          (HISTORY + "test_off_leaves_a_hole_and_ordinals_count_on",
           HISTORY + "test_off_everything_but_the_log_goes_on",
           HISTORY + "test_off_is_refused_while_an_observer_is_active")),
    Proof("5 purge", "Children first, workflows whole, counts exact, observers waited for.",
          (PURGE + "test_a_job_goes_at_the_end_of_its_window_and_not_before",
           PURGE + "test_a_parent_stays_with_its_output_while_a_descendant_is_stored",
           PURGE + "test_members_of_a_workflow_go_together_from_the_latest_end",
           PURGE + "test_a_row_that_an_active_observer_has_not_passed_keeps_its_job",
           PURGE + "test_counts_stay_exact_before_and_after_the_fold")),
    Proof("6 graph", "Stored whole or not at all; steps may be appended, edges never change.",
          (WORKFLOWS + "test_a_workflow_that_is_rolled_back_leaves_nothing",
           WORKFLOWS + "test_appended_steps_wait_for_each_other_and_for_stored_ones",
           WORKFLOWS
           + "test_appended_steps_that_do_not_fit_are_refused_and_nothing_is_written")),
    Proof("6 status", "Always derived from the members.",
          ("store/test_workflow_queries.py"
           "::test_the_status_of_each_workflow_is_derived_from_its_members",)),
    Proof("6 retry", "Refused while a member is live; only edges between moved members open.",
          (RETRY + "test_a_retry_is_refused_while_a_member_is_live_and_says_which",
           RETRY + "test_only_edges_between_moved_members_open_again",
           RETRY + "test_dependents_outside_the_workflow_stay_as_they_are_and_are_named",
           RETRY
           + "test_each_moved_member_has_one_log_row_and_one_audit_row_in_enqueue_order")),
    Proof("6 restart and cancel", "A new workflow of the same steps, linked; every live member.",
          (WORKFLOW_ACTIONS + "test_a_restart_is_linked_both_ways_and_keeps_name_and_input",
           WORKFLOW_ACTIONS + "test_a_cancel_ends_what_waits_and_asks_what_runs")),
    Proof("7 observers", "At least once, in order per job, under a lease, until retired.",
          (OBSERVERS + "test_a_new_observer_starts_at_the_end_of_the_log_unless_told",
           OBSERVERS + "test_a_dispatcher_that_lost_its_lease_writes_nothing",
           OBSERVERS + "test_an_observer_is_active_for_seven_days_after_its_last_registration",
           DELIVERIES + "test_a_row_in_back_off_holds_back_only_later_rows_of_its_own_job",
           DELIVERIES + "test_after_ten_failures_a_delivery_is_dead_and_the_next_row_follows",
           DELIVERIES + "test_calls_that_end_their_process_are_counted_apart_and_alone")),
    Proof("8 schedules", "Ticks mint once; overlaps and outages are skipped in sight.",
          (SCHEDULES + "test_two_nodes_never_mint_the_same_tick_twice",
           SCHEDULES + "test_a_tick_that_would_overlap_is_skipped_in_sight",
           SCHEDULES + "test_a_trigger_is_audited_and_leaves_the_ticks_as_they_are")),
    Proof("8 many jobs", "One operation, each job acted on once, with its own audit row.",
          (BULK + "test_every_matching_job_is_requeued_with_its_own_audit_row",
           BULK
           + "test_a_crash_before_any_statement_loses_no_member_and_takes_none_twice")),
    Proof("9 bounds", "Exactly at the bound is fine, one more is refused by name.",
          (OUTPUTS + "test_payloads_and_outputs_are_kept_byte_for_byte_up_to_their_bounds",
           "jobs/test_bind.py"
           "::test_a_payload_of_exactly_65536_bytes_is_fine_and_one_more_is_not")),
    Proof("10 audit", "The audit after every test finds each kind of violation.",
          ("store/test_audit.py::test_every_check_has_a_planted_violation",
           "store/test_audit.py::test_the_audit_finds")),
    Proof("10 counters", "Counts are the stored rows.",
          ("store/test_counters.py::test_counts_are_the_stored_rows_after_random_moves",)),
)  # fmt: skip

CLAUSES = (*MACHINE, *DEPENDENCIES, *WORK)
